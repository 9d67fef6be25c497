"""What the agent knows and all its parts share; imports no other part of the agent.

holdings       who holds GPUs: containers of pods, and requests of ResourceClaims
record         all holdings by CDI name, on disk
settings       the node's name and folders
cluster        pods and grants, as this node reads them
observed       the Node object, whose the pods are, and the configuration of NVIDIA's device plugin that applies
gpu_health     NVML's facts and errors -> which GPUs are healthy
"""
