"""The pods that request GPUs, one row each: what they hold, or why they are pending."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from lamina.core.grants import ContainerGrant, Grant
from lamina.core.pod_status import is_over
from lamina.core.requests import PodRequest
from lamina.errors import BadInput
from lamina.ports.kube import Object
from lamina.report.claim_shares import requests_by_claims
from lamina.report.cluster_use import ClusterUse
from lamina.report.cluster_view import ClusterView
from lamina.report.native_capacity import counted
from lamina.report.pod_claims import PodClaim
from lamina.report.reasons import waiting_because
from lamina.report.shares import ShareRow, held_shares, shares_of_survivor, status_of

_SURVIVES = "it is deleted, but its processes still run, so its shares count"
DELETED, REFUSED = "Deleted", "Refused"


class PodRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """One pod that requests GPUs, a deleted one whose processes still run, or a workload whose pods are refused."""

    namespace: str
    pod: str
    """For a workload, its kind and name, such as `deployment/web`."""
    status: str
    node: str
    memory_mib: int
    """The sum over its shares."""
    shares: tuple[ShareRow, ...]
    devices: Mapping[str, int]
    """What kubelet allocates by itself, counted by resource."""
    reason: str
    """Why it waits or cannot start; empty for a pod that does neither."""


Selected = Callable[[Mapping[str, str]], bool]


def pods_with_gpus(cluster: ClusterView, namespace: str | None, selected: Selected | None = None) -> list[Object]:
    """The pods that request GPUs or hold part of one, in one namespace or in all (None): first those on nodes."""
    return [
        pod
        for pod in sorted(cluster.pods, key=_order)
        if namespace in (None, pod["metadata"]["namespace"])
        and (selected is None or selected(pod["metadata"].get("labels") or {}))
        and pod_gpus(cluster, pod)
    ]


def pod_rows(cluster: ClusterView, namespace: str | None) -> list[PodRow]:
    """The rows of these pods, and deleted ones last, where no agent was asked."""
    return [*rows_of(pods_with_gpus(cluster, namespace), cluster, ClusterUse()), *deleted_rows(cluster, namespace)]


def rows_of(pods: Iterable[Object], cluster: ClusterView, use: ClusterUse) -> list[PodRow]:
    """The rows of these pods. `use` is what agents say."""
    return [_row(pod, cluster, use) for pod in pods]


def deleted_rows(cluster: ClusterView, namespace: str | None, selected: Selected | None = None) -> Iterator[PodRow]:
    """The rows of deleted pods whose processes still run. Their labels are not known, so a selector leaves them out."""
    if selected is not None:
        return
    for node, survivor in cluster.survivors(namespace):
        yield _pod_row(
            (survivor.namespace, survivor.pod, DELETED, node),
            shares_of_survivor(survivor.containers, cluster.inventories[node]),
            reason=_SURVIVES,
        )


def refused_row(namespace: str, workload: str, reason: str) -> PodRow:
    """The row of a workload, given as kind/name, none of whose pods is admitted."""
    return _pod_row((namespace, workload, REFUSED, ""), (), reason=reason)


class UnplacedPod(NamedTuple):
    """A pod that requests GPUs and has no node yet."""

    namespace: str
    pod: str
    status: str


def waiting_pods(cluster: ClusterView) -> list[UnplacedPod]:
    """These pods in all namespaces, without reasons: finding one means looking at all nodes."""
    return [
        UnplacedPod(pod["metadata"]["namespace"], pod["metadata"]["name"], status_of(pod))
        for pod in pods_with_gpus(cluster, None)
        if not pod["spec"].get("nodeName") and not is_over(pod)
    ]


def _order(pod: Object) -> tuple[bool, str, str]:
    """Running pods first, pending ones last."""
    return (not pod["spec"].get("nodeName"), pod["metadata"]["namespace"], pod["metadata"]["name"])


def _row(pod: Object, cluster: ClusterView, use: ClusterUse) -> PodRow:
    meta, node, gpus = pod["metadata"], pod["spec"].get("nodeName", ""), pod_gpus(cluster, pod)
    by_kubelet = bool(node) and not is_over(pod) and not (gpus.grant or gpus.held_by_claims)
    return _pod_row(
        (meta["namespace"], meta["name"], status_of(pod), node),
        held_shares(pod, cluster, use),
        gpus.devices if by_kubelet else {},
        waiting_because(cluster, pod),
    )


def _pod_row(
    where: tuple[str, str, str, str], shares: tuple[ShareRow, ...], devices: Mapping[str, int] = {}, reason: str = ""
) -> PodRow:
    namespace, pod, status, node = where
    return PodRow(
        namespace=namespace,
        pod=pod,
        status=status,
        node=node,
        memory_mib=sum(share.memory_mib for share in shares),
        shares=shares,
        devices=devices,
        reason=reason,
    )


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
