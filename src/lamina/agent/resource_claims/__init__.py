"""GPUs by ResourceClaims: the node's driver for Dynamic Resource Allocation.

offer      what claims may get of the node now
doors      which GPUs pods have by the device plugins
publisher  keeps the node's ResourceSlices as offered
instances  MIG instances for claims
preparer   makes and removes what a claim needs
binding    prepares claims before their pods are bound
release    removes what kubelet has forgotten
"""
