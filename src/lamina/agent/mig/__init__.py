"""MIG on a node: GPUs are cut as the node's label says, and their instances are offered to kubelet.

cutting   one GPU: what is there, what is wanted, and the steps between
cutter    the node: its label and mig-parted's file -> all GPUs, with a state that everybody can read
offering  MIG devices -> resources by NVIDIA's strategies
"""
