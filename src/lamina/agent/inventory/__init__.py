"""What the node offers: the Inventory object in the cluster and the devices that kubelet sees.

tickets         IDs that name no GPU; the pod's grant says which GPU they stand for
native_devices  GPUs, MIG devices and replicas that kubelet assigns itself, with the IDs of NVIDIA's plugin
usage           the record -> what each GPU is used for, and what may start next to it
monitor         polls NVML and reports what it finds
builder         GPUs and configuration -> Inventory
reducer         state of the node -> Inventory and devices, pure
offer_store     holds that state, and wakes who waits for what follows from it
publisher       writes the Inventory object
"""
