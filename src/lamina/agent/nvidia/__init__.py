"""Configuration of NVIDIA's device plugin on this node.

config_watch  ClusterPolicy, ConfigMap and label -> the configuration that applies, and when another one does
time_slices   sets the length of time slices
"""
