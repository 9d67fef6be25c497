"""What the agent knows and all its parts share; imports no other part of the agent.

record         the CDI names that were handed out, and the container that each belongs to
claim_record   the ResourceClaims that are prepared
settings       the node's name and folders
cluster        pods and grants, as this node reads them
observed_node  the Node object as it was last observed
nvidia_config  the configuration of NVIDIA's device plugin that applies
gpu_health     NVML's facts and errors -> which GPUs are healthy
observable     a value with watchers
"""
