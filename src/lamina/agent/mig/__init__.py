"""MIG on a node: GPUs are cut as the node's label says, with instances offered to kubelet, or as grants ask.

users     who uses instances
made      what Lamina made: the notes on the disk
maker     making and destroying, each noted first
on_demand instances that grants ask for, made before a container starts and taken away after it
cutting   one GPU: what is there, what is wanted, and the steps between
cutter    the node: its label and mig-parted's file -> all GPUs, with a state that everybody can read
offering  MIG devices -> resources by NVIDIA's strategies
"""
