"""What the facade costs and holds, compared with no facade at all, on a simulated machine.

calls          cost of single calls, by threads, processes and blocks held
together       what many processes lose to each other
starting       cuInit, whole processes, many that start at once
holding        what is held over a limit, and how soon a dead process's memory is back
instructions   how many instructions a path takes, which does not drift with the machine
"""
