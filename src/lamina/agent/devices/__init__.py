"""The device IDs that kubelet hands out: tickets, native devices and MIG devices. Plain data.

tickets               IDs that name no GPU; the pod's grant says which GPU they stand for
native_devices        GPUs and replicas that kubelet assigns itself, with the IDs of NVIDIA's plugin
mig_devices           MIG devices -> resources, by NVIDIA's strategies
preferred_allocation  which of the available devices a container should get
usage_by_gpu          the record -> what each GPU is used for
"""
