"""One agent per node: it publishes what GPUs there are, hands tickets to kubelet, and prepares what a grant says.

monitor      NVML's facts and errors -> which GPUs are there and healthy
inventory    those and the configuration -> the node's Inventory object
tickets      the same -> device ids for kubelet, which name no GPU
plugin       kubelet's calls; registration keeps kubelet knowing about it
prepare      tickets -> holder -> grant -> container directory and CDI spec
release      the pod is gone -> so is everything that was made for it
uses         the record -> what each GPU is used for
plain...     GPUs and replicas that kubelet gives out by itself; nvidia_... finds the configuration for it
reconcile    at the start, and whenever the configuration changes: compare record, kubelet and files, and mend
"""
