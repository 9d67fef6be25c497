"""The device plugins of the node.

plugin        kubelet's calls for one resource, of tickets or of native devices
registration  keeps the plugin registered
plugins       one plugin per resource
claim_plugin  the driver for ResourceClaims
"""
