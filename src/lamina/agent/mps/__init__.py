"""MPS: a control daemon for each GPU that the node shares so.

limits   what each client of a GPU may have, and the commands that say so
kept     which daemons were made, on the disk
starting one daemon brought up or taken down, step by step
daemons  every daemon of the node, looked after
edits    what a container gets to be a client
"""
