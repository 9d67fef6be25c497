"""The agent of one node: advertises its GPUs, hands out devices to kubelet, and prepares containers as grants say.

run              one configuration after the other
parts            the parts of one agent
kubelet          device plugins: kubelet's calls
resource_claims  GPUs by ResourceClaims
prepare          what a container needs before it starts
cleanup          what is removed when a pod, the agent or Lamina goes
limits           enforcement while containers run
metrics          the Prometheus endpoint
compat           the Node object: labels, annotations and resources for tools of other systems
mig              MIG partitions
mps              MPS daemons
nvidia           configuration of NVIDIA's device plugin
context          what all of these work with
inventory        what the node offers: device IDs and its Inventory
containers       files of a container
chargeback       what workloads held and used over time
state            the record, settings, and what was observed

Each imports only what is below it; .importlinter has the exact order.
"""
