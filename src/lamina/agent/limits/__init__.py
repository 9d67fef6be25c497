"""Limits while containers run.

arbitration    divides each GPU's time between containers
file_events    what containers have made of their files
driver_limits  the driver's own memory limits, per cgroup
"""
