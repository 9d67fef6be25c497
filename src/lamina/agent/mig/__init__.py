"""MIG on a node: GPUs are partitioned as the node's label says, or on demand for grants.

users         who uses GPUs and MIG devices
ownership     which instances Lamina made, on disk
maker         creates and destroys instances, noted first
on_demand     instances for grants, created before a container starts and destroyed after it
partitioning  one GPU: current state, desired state, and the steps between
partitioner   the node: its label and mig-parted's file -> all GPUs, with a state label
"""
