"""Allocates devices to resource claims, with the rules of kube-scheduler's structured allocator in Kubernetes 1.36."""
