"""GPUs by ResourceClaims: the node's driver for Dynamic Resource Allocation.

dra_devices  what claims may get of the node now
publisher    keeps the node's ResourceSlices as offered
unit         the claims that are prepared in one step
plan         what they need: MIG instances, daemons, turns and files
preparer     makes and removes that
quotas       those of namespaces, for claims
daemons      MPS daemons of claims
binding      prepares claims before their pods are bound
release      removes what kubelet has forgotten
"""
