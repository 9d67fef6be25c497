"""Each pod that requests or holds GPUs, with its shares, or with why it waits."""

import logging
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lamina.core.gpus import Inventory, Mode
from lamina.core.grants import ContainerGrant, Grant
from lamina.core.workloads import workload_of
from lamina.dialects.containers import read_containers
from lamina.ledger.pods import ParsedPod
from lamina.operations.dashboard.document import ContainerLimits, PodCard, ShareCard
from lamina.ports.kube import Object
from lamina.ports.kube.moments import seconds_of
from lamina.report import compute
from lamina.report.cluster_view import ClusterView
from lamina.report.pods import PodRow, pod_gpus
from lamina.report.reasons import waiting_because, why_pod
from lamina.report.refusals import LISTED
from lamina.report.remedies import WaysOut

log = logging.getLogger(__name__)

RUNNING, PENDING, REFUSED, DELETED = "running", "pending", "refused", "deleted"
_KINDS = {resource.kind.lower(): resource.kind for resource in LISTED}
_DELETED = "It is deleted, but its processes still run, so its shares count."


class _Sources(NamedTuple):
    """All that the card of a pod on a node is made of."""

    parsed: ParsedPod
    grant: Grant | None
    inventory: Inventory | None
    refused: str
    not_prepared: str

    def same(self, others: "_Sources") -> bool:
        """Whether these are the same objects, or an inventory that says the same."""
        known = self.inventory is others.inventory or self.inventory == others.inventory
        return self.parsed is others.parsed and self.grant is others.grant and known and self[3:] == others[3:]


class PodCards:
    """Cards of one cluster after the other. A pod on a node keeps its card while nothing has changed in what it shows;
    what a pod waits for can change with every other pod."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[_Sources, PodCard | None]] = {}

    def of(self, cluster: ClusterView, refused: Mapping[tuple[str, str], str]) -> tuple[dict[str, PodCard], int]:
        """Cards by UID, and how many pods could not be read. Pods that have succeeded are left out. `refused` says of
        pods when they were refused memory, by namespace and UID."""
        cards: dict[str, PodCard] = {}
        unread = 0
        ways_out = WaysOut(cluster)
        before, self._kept = self._kept, {}
        for pod in cluster.pods:
            try:
                card = self._card(cluster, pod, ways_out, refused, before)
            except Exception as error:  # what one tenant wrote must not hide the pods of the others
                log.warning("pod %s cannot be shown: %r", pod["metadata"].get("name"), error)
                unread += 1
                continue
            if card is not None:
                cards[pod["metadata"]["uid"]] = card
        return cards | dict(_deleted(cluster)), unread

    def _card(
        self,
        cluster: ClusterView,
        pod: Object,
        ways_out: WaysOut,
        refused: Mapping[tuple[str, str], str],
        before: Mapping[str, tuple[_Sources, PodCard | None]],
    ) -> PodCard | None:
        uid, node = pod["metadata"]["uid"], str(pod["spec"].get("nodeName") or "")
        text = refused.get((pod["metadata"]["namespace"], uid), "")
        parsed = cluster.parsed.get(id(pod))
        if not node or parsed is None:
            return _card(cluster, pod, ways_out, text)
        failure = cluster.claims.not_prepared(pod)
        sources = _Sources(parsed, cluster.grants.get(uid), cluster.inventories.get(node), text, failure)
        kept = before.get(uid)
        if kept is None or not kept[0].same(sources):
            kept = sources, _card(cluster, pod, ways_out, text)
        self._kept[uid] = kept
        return kept[1]


def _deleted(cluster: ClusterView) -> Iterator[tuple[str, PodCard]]:
    """Pods that are gone while their processes run, by UID."""
    for node, survivor in cluster.survivors():
        yield (
            survivor.pod_uid,
            PodCard(
                namespace=survivor.namespace,
                name=survivor.pod,
                state=DELETED,
                node=node,
                shares=tuple(_shares(survivor.containers, node, cluster.inventories.get(node))),
                reason=_DELETED,
            ),
        )


def refused_workload(row: PodRow) -> PodCard:
    """The card of a workload that has no pods because admission refuses them."""
    kind, _, name = row.pod.partition("/")
    workload = f"{_KINDS.get(kind, kind)}/{name}"
    return PodCard(namespace=row.namespace, name=row.pod, state=REFUSED, reason=row.reason, workload=workload)


def _card(cluster: ClusterView, pod: Object, ways_out: WaysOut, refused: str) -> PodCard | None:
    status, gpus = pod.get("status") or {}, pod_gpus(cluster, pod)
    grant, request = gpus.grant, gpus.request
    phase = str(status.get("phase") or "Unknown")
    if phase == "Succeeded" or not gpus:
        return None
    node = str(pod["spec"].get("nodeName") or "")
    held = grant is not None and node and phase != "Failed"
    containers = (*(grant.containers if grant and held else ()), *gpus.held_by_claims)
    reason = waiting_because(cluster, pod)
    meta, spec, workload = pod["metadata"], pod["spec"], workload_of(pod)
    created = seconds_of(meta.get("creationTimestamp"))
    return PodCard(
        namespace=meta["namespace"],
        name=meta["name"],
        workload=f"{workload.kind}/{workload.name}" if workload.kind else "",
        created=None if created is None else int(created),
        priority=int(spec.get("priority") or 0),
        priority_class=str(spec.get("priorityClassName") or ""),
        claims=tuple(dict.fromkeys(claim.name or claim.entry for claim in gpus.claims)),
        state=_state(node, phase, gpus.refusal),
        phase=phase,
        node=node,
        dialect=grant.dialect if grant else request.dialect if request else "",
        shares=tuple(_shares(containers, node, cluster.inventories.get(node))),
        limits=tuple(_limits(pod)),
        reason=reason,
        why=tuple(line.strip() for line in why_pod(cluster, pod)) if not node or reason else (),
        ways_out=ways_out.of(pod),
        refused_memory=refused,
    )


def _state(node: str, phase: str, refusal: str) -> str:
    if phase == "Failed" or (refusal and not node):
        return REFUSED
    return RUNNING if node and phase != "Pending" else PENDING


def _shares(containers: tuple[ContainerGrant, ...], node: str, inventory: Inventory | None) -> Iterator[ShareCard]:
    indices = {gpu.uuid: gpu.index for gpu in inventory.gpus} if inventory else {}
    for container in containers:
        for share in container.shares:
            yield ShareCard(
                container=container.name,
                node=node,
                gpu=share.gpu,
                index=indices.get(share.gpu),
                mode=str(share.mode),
                memory_mib=share.memory_mib,
                most_mib=share.limit_mib,
                physical_mib=share.physical_mib or share.memory_mib,
                cores=share.cores,
                compute_meaning=compute.held_by(share),
                mig=f"{share.mig.profile} at {share.mig.start}" if share.mig else "",
                priority=container.priority if share.mode is Mode.QUOTA else None,
            )


def _limits(pod: Object) -> Iterator[ContainerLimits]:
    for container in read_containers(pod):
        if container.requested:
            limits = {str(name): str(amount) for name, amount in container.requested.items()}
            yield ContainerLimits(container=container.name, limits=limits)
