"""MPS: one control daemon for each GPU that the node shares this way. The MPS service runs them.

clients    what each client of a GPU may use, and what a container needs to be one
lifecycle  starts or stops one daemon, step by step, with a journal on disk
daemons    supervises every daemon of the node
sharing    puts these together for the node's configuration and for grants
"""
