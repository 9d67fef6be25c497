"""What people do with a cluster or a machine: explain pending pods, examine, reset, uninstall, verify, simulate.

`cli` parses options, calls these, and prints.
"""
