"""Limits while containers run.

arbitration      divides each GPU's time between containers
confirmed_work   what the driver says of their work
context_figures  what processes use by the driver's figures
displaced        pods whose borrowed memory is on the host
file_events      what containers have made of their files
driver_limits    the driver's own memory limits, per cgroup
"""
