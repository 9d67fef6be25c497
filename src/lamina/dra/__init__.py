"""Dynamic Resource Allocation as plain data: no I/O, no clock.

names       of the driver, its devices, classes and CDI devices
offers      GPUs and MIG devices -> the devices that a node offers
slices      devices -> the ResourceSlices of a node
parameters  opaque parameters of NVIDIA's driver
claims      an allocated claim -> the shares of its requests
"""
