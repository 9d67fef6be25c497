"""The configuration in force of a program that runs: from a file or the ConfigMap, at its start and when it changes.

live       what is in force, and what follows when the text changes
initial    the start of a program that waits while the text is refused
last_good  the start of one that goes on with the last accepted text
"""
