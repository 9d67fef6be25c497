"""The verbs of the command line: each parses its options, calls one function of a room, and prints."""
