"""Kubelet's device manager: device plugins, allocation, CDI and the PodResources service."""
