"""A kubelet without root: each container of its node's pods is a local process under a small supervisor, the shim.

    kubelet -> pods.worker, one per pod -> pods.planning (pure)   what to start, stop and wait for
                                        -> containers.starter     devices, CDI, environment, then a shim
                                        -> pods.status (pure)     what is reported to the API server
    device_manager   kubelet's gRPC services for device plugins; allocation (pure) decides who gets which device
    serving          logs and exec for the API server, over HTTP on a Unix socket
    containers       the shim, its client, and cleaning up processes that outlive it

Differences from a real kubelet: no images, volumes, namespaces or cgroups. A container's program comes from PATH, CDI
mounts become environment variables (containers.mounts), and when the kubelet ends, for whatever reason, every container
ends. A restarted kubelet therefore behaves as after a reboot of its node: it ends leftover processes, keeps the devices
that its checkpoint assigns to pods, and restarts containers according to their restart policy.
"""
