"""The interfaces of kubelet: the device plugin protocol, which the agent serves, and PodResources, which it asks.

The `*_pb2*` files are generated from the two .proto files by `python -m lamina.ports.kubelet.generate`.
"""
