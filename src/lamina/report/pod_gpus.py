"""By what a pod requests and holds GPUs: its resources, native devices that it counts, and ResourceClaims.

One answer for all views, so that none shows a pod which another one leaves out.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamina.core.grants import ContainerGrant, Grant
from lamina.core.requests import PodRequest
from lamina.errors import BadInput
from lamina.ports.kube import Object
from lamina.report.claim_shares import requests_by_claims
from lamina.report.cluster_view import ClusterView
from lamina.report.native_capacity import counted
from lamina.report.pod_claims import PodClaim


class PodGpus(NamedTuple):
    """`refusal` says why the request cannot be read; empty where it can."""

    request: PodRequest | None
    refusal: str
    devices: Mapping[str, int]
    """What it requests of native devices."""
    claims: Sequence[PodClaim]
    grant: Grant | None
    held_by_claims: Sequence[ContainerGrant]

    def __bool__(self) -> bool:
        return any(self)


def pod_gpus(cluster: ClusterView, pod: Object) -> PodGpus:
    """What this pod of the cluster requests and holds; false where that is nothing."""
    request, refusal, devices, claims = None, "", {}, list[PodClaim]()
    try:
        request = cluster.request(pod)
        devices = counted(pod)
        claims = cluster.claims.of(pod)
    except BadInput as problem:
        refusal = str(problem)
    grant = cluster.grants.get(pod["metadata"]["uid"])
    return PodGpus(request, refusal, devices, claims, grant, requests_by_claims(pod, cluster.inventories))
