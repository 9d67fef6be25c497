"""Which nodes kube-scheduler itself allows a pod: labels, taints, and what a node offers next to GPUs."""
