"""What people do with a cluster or a machine: examine, reset, uninstall, verify, simulate.

`cli` parses options, calls these, and prints.
"""
