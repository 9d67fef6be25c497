"""The device IDs that kubelet hands out: tickets, native devices and MIG devices. Plain data.

tickets         IDs that name no GPU; the pod's grant says which GPU they stand for
native_devices  GPUs, MIG devices and replicas that kubelet assigns itself, with the IDs of NVIDIA's plugin
usage           the record -> what each GPU is used for, and what may start next to it
"""
