"""The device plugins of the node.

plugin         kubelet's calls for one resource
native_plugin  what is special about native devices
registration   keeps the plugin registered
plugins        one plugin per resource
claim_plugin   the driver for ResourceClaims
"""
