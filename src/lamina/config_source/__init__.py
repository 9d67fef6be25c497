"""The configuration in force of a program that runs: from a file or the ConfigMap, at its start and when it changes."""
