"""The command line: each command parses its options, calls one operation, and prints the result."""
