"""MIG on a node: GPUs are partitioned as the node's label says, or on demand for grants.

maker              creates and destroys instances, noted first
grant_partitioner  instances for grants, created before a container starts and destroyed after it
apply              one GPU: current state, desired state, and the steps between
label_partitioner  the node: its label and mig-parted's file -> all GPUs, with a state label
"""
