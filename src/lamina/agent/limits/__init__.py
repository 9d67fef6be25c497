"""Limits while containers run.

arbitration        divides each GPU's time between containers, and tells processes the driver's figures
driver_reports     what the driver says of their work, and whose the processes are
container_resizer  gives running containers other sizes
memory_refusals    events about refused memory and spoiled files
driver_limits      the driver's own memory limits, per cgroup
"""
