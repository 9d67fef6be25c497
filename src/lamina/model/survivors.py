"""Pods that are deleted, or finished by what Kubernetes says, while their processes run on a node.

`kubectl delete --force` removes a pod at once, and kubelet ends its containers after their grace period. A pod can be
removed too while kubelet does not answer, and its containers run on. What such a pod holds is taken until its processes
are gone.
"""

from msgspec import Struct

from lamina.model.grants import ContainerGrant

MAX_SURVIVORS = 500
"""On one node. Kubelet counts them too: it starts no more than 110 pods by default."""


class Survivor(Struct, frozen=True, kw_only=True):
    """Such a pod, with the shares of its containers."""

    namespace: str
    pod: str
    pod_uid: str
    containers: tuple[ContainerGrant, ...]
