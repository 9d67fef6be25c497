"""Configuration of NVIDIA's device plugin on this node.

config_source  ClusterPolicy, ConfigMap and label -> the configuration that applies
config_watch   reports when another one applies
time_slices    sets the length of time slices
"""
