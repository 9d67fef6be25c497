"""Pods that are deleted, or finished by what Kubernetes says, while their processes run on a node.

`kubectl delete --force` removes a pod at once, and kubelet ends its containers after their grace period. A pod can be
removed too while kubelet does not answer, and its containers run on. What such a pod holds is taken until its processes
are gone.
"""

from typing import Annotated

from msgspec import Meta, Struct

from lamina.core.fields import Name, camel_case, means
from lamina.core.grants import MAX_CONTAINERS, ContainerGrant

MAX_SURVIVORS = 500
"""On one node. Kubelet counts them too: it starts no more than 110 pods by default."""


class Survivor(Struct, frozen=True, kw_only=True, rename=camel_case):
    """A pod that is deleted, or finished, while its processes run on the node."""

    namespace: Annotated[Name, means("Namespace of the pod")]
    pod: Annotated[Name, means("Name of the pod")]
    pod_uid: Annotated[Name, means("UID of the pod")]
    containers: Annotated[tuple[ContainerGrant, ...], Meta(max_length=MAX_CONTAINERS), means("Containers with shares")]
