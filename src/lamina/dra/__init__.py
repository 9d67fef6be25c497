"""Dynamic Resource Allocation as plain data: no I/O, no clock.

names         of the driver, its devices, classes and CDI devices
offers        GPUs and MIG devices -> the devices that a node offers
partitions    the MIG devices that a GPU may be partitioned into, and their counters
slices        devices -> the ResourceSlices of a node
opaque        opaque parameters, whose they are, and for which requests
parameters    NVIDIA's: how containers share a device
share_limits  Lamina's: limits above what is guaranteed
generated     the request of a pod -> a template of claims for it
conditions    for which the scheduler waits before it binds a pod
claims        an allocated claim -> the shares of its requests
"""
