"""A kubelet without root: each container of its node's pods is a local process under a small supervisor, the shim.

    kubelet -> podworker, one per pod -> planning (pure)    what to start, stop, wait for
                                      -> starting           devices, CDI, environment (pure), then a shim
                                      -> podstatus (pure)   what the API server is told
    plugins, devicemanager, podresources: kubelet's gRPC towards device plugins; devices (pure) decides who gets what
    server, sessions, logs: logs and exec for the API server, over HTTP on a Unix socket
    shims, shim, leftovers: processes, and the end of all of them

What is different from a real kubelet: no images, volumes, namespaces or cgroups. A container's program comes from PATH,
mounts of CDI become environment (mounts.py), and the end of the kubelet, of whatever kind, ends every container. A
kubelet that comes back therefore behaves as after a reboot of its node: it ends what is left over, keeps the devices
that its checkpoint says pods hold, and starts containers again as their restart policy says.
"""
