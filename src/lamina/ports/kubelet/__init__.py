"""Kubelet's doors: the device plugin protocol, in which the agent is a server, and PodResources, in which it asks.

The `*_pb2*` files are generated from the two .proto files by `python -m lamina.ports.kubelet.generate`.
"""
