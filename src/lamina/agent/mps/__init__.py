"""MPS: one control daemon for each GPU that the node shares this way. The MPS service runs them.

client_limits    what each client of a GPU may use, and the commands that set it
journal          which daemons were started, on disk
lifecycle        starts or stops one daemon, step by step
restart_backoff  when a failed daemon may start again
daemons          supervises every daemon of the node
client_edits     what a container needs to be a client
grant_clients    clients with grants
sharing          puts these together
teardown         ends the daemons at uninstall
"""
