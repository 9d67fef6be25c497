"""The lab's allocator of devices, compared with Kubernetes' own scheduler.

`inventories` makes ResourceSlices and DeviceClasses of all kinds, `wishes` the claims for them, each from a seed.
`scheduled` has kube-scheduler answer; the test compares.
"""
