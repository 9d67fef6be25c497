"""What the node offers: the Inventory object in the cluster and the devices that kubelet sees.

monitor      polls NVML and reports what it finds
builder      GPUs and configuration -> Inventory
reducer      state of the node -> Inventory and devices, pure
offer_store  holds that state, and wakes who waits for what follows from it
publisher    writes the Inventory object
"""
