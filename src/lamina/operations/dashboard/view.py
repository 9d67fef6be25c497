"""The document of one view of a cluster."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from lamina.agent.mig.label_partitioner import LABEL as MIG_CONFIGURATION
from lamina.agent.mig.label_partitioner import STATE as MIG_STATE
from lamina.core.gpus import Inventory
from lamina.core.ledger import NOTHING, Taken, taken_by_claims
from lamina.core.mig_devices import strategy_hint
from lamina.core.nodes import kept_out
from lamina.core.prices import Pricing
from lamina.install.agent_values import GPU_NODES
from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures, GpuCard, GpuPart, NodeCard, PodCard
from lamina.operations.dashboard.pod_cards import PENDING, REFUSED, RUNNING, PodCards, refused_workload
from lamina.operations.dashboard.stranded import stranded_gpus
from lamina.placement import NodeState
from lamina.placement.state.nodes import GpuState
from lamina.ports.kube import Object
from lamina.report import compute
from lamina.report.claim_shares import claimed
from lamina.report.cluster_view import ClusterView
from lamina.report.gpus import mode_of
from lamina.report.pods import PodRow

_WAITING = (PENDING, REFUSED)
_POOLS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
)
"""Labels by which providers name pools of nodes."""


class NodeCondition(NamedTuple):
    """What Kubernetes says of a node."""

    ready: bool = True
    cordoned: bool = False
    mig_configuration: str = ""
    """What its label requests."""
    mig_state: str = ""
    pool: str = ""
    to_be_served: bool = False
    """Whether its labels say that it has GPUs, and none that Lamina leaves it alone."""


def condition_of(node: Object) -> NodeCondition:
    """What a node's object says."""
    labels, status = node["metadata"].get("labels") or {}, node.get("status") or {}
    ready = [each.get("status") for each in status.get("conditions") or () if each.get("type") == "Ready"]
    return NodeCondition(
        ready=ready in ([], ["True"]),
        cordoned=bool((node.get("spec") or {}).get("unschedulable")),
        mig_configuration=labels.get(MIG_CONFIGURATION, ""),
        mig_state=labels.get(MIG_STATE, ""),
        pool=next((labels[name] for name in _POOLS if labels.get(name)), ""),
        to_be_served=not kept_out(labels) and any(labels.get(key) == value for key, value in GPU_NODES),
    )


def document_of(
    cluster: ClusterView,
    conditions: Mapping[str, NodeCondition],
    refused: Mapping[tuple[str, str], str] = MappingProxyType({}),
    cards: PodCards | None = None,
    workloads: Sequence[PodRow] = (),
) -> ClusterDocument:
    """The document of this view. A node that Kubernetes does not have is not ready. `refused` says of pods when they
    were refused memory, by namespace and UID; `cards` made those of the views before; `workloads` are those whose pods
    are refused."""
    pods, unread = (cards or PodCards()).of(cluster, refused)
    states = cluster.nodes
    stranded = stranded_gpus(cluster, states)
    gone = NodeCondition(ready=False)
    nodes = {
        state.name: _node(cluster, state, conditions.get(state.name, gone), pods, stranded)
        for state in sorted(states, key=lambda state: state.name)
    }
    refusals = {f"{each.namespace}/{each.pod}": refused_workload(each) for each in workloads}
    silent = sum(each.to_be_served for name, each in conditions.items() if name not in cluster.inventories)
    figures = msgspec.structs.replace(_figures(cluster, nodes, pods, unread), nodes_without_inventory=silent)
    return ClusterDocument(cluster=figures, nodes=nodes, pods=pods | refusals)


def _node(
    cluster: ClusterView, state: NodeState, condition: NodeCondition, pods: Mapping[str, PodCard], stranded: set[str]
) -> NodeCard:
    inventory = cluster.inventories[state.name]
    parts, claims = _parts(cluster, state.name, pods), claimed(inventory)
    return NodeCard(
        name=state.name,
        driver=inventory.driver,
        ready=condition.ready,
        cordoned=condition.cordoned,
        native=tuple(f"{each.count} {each.resource}" for each in inventory.native_resources),
        notes=inventory.mig_leftovers,
        mig=tuple(_mig_lines(inventory, condition)),
        refused=tuple(f"{each.source}: {each.reason}" for each in inventory.refused),
        pool=condition.pool,
        gpus=tuple(
            _gpu(
                gpu,
                claims.get(gpu.gpu.uuid, NOTHING),
                tuple(parts.get(gpu.gpu.uuid, ())),
                gpu.gpu.uuid in stranded,
            )
            for gpu in state.gpus
        ),
    )


def _mig_lines(inventory: Inventory, condition: NodeCondition) -> Iterator[str]:
    if condition.mig_configuration:
        yield f"configuration {condition.mig_configuration}: {condition.mig_state or 'not applied yet'}"
    for devices in inventory.mig_devices:
        offered = f"offered as {devices.resource}" if devices.resource else f"not offered, because {devices.reason}"
        yield f"{devices.count} {devices.profile}, {offered}{strategy_hint(devices)}"


def _parts(cluster: ClusterView, node: str, pods: Mapping[str, PodCard]) -> dict[str, list[GpuPart]]:
    """What each pod holds, by UUID of the GPU, in the order of names, and then what ResourceClaims hold."""
    found: dict[str, list[GpuPart]] = {}
    for name, uid in sorted((_name(pods, uid), uid) for uid in cluster.ledger.totals.pods_on(node)):
        for uuid, taken in cluster.ledger.totals.of(uid).get(node, {}).items():
            found.setdefault(uuid, []).append(_part(uid, name, taken, pods.get(uid), uuid))
    for claim in cluster.inventories[node].claims:
        for uuid, taken in taken_by_claims([claim]).items():
            found.setdefault(uuid, []).append(_part("", f"claim {claim}", taken))
    return found


def _name(pods: Mapping[str, PodCard], uid: str) -> str:
    card = pods.get(uid)
    return f"{card.namespace}/{card.name}" if card else uid


def _part(uid: str, name: str, taken: Taken, card: PodCard | None = None, gpu: str = "") -> GpuPart:
    shares = card.shares if card else ()
    return GpuPart(
        pod=uid,
        namespace=card.namespace if card else "",
        workload=card.workload if card else "",
        name=name,
        memory_mib=taken.memory_mib,
        cores=taken.cores,
        compute_meaning=compute.of_gpu(each.compute_meaning for each in shares if each.gpu == gpu),
        whole=taken.whole,
        instances=tuple(f"{each.profile} at {each.start}" for each in taken.instances),
    )


def _gpu(state: GpuState, claimed: Taken, parts: tuple[GpuPart, ...], stranded: bool) -> GpuCard:
    """What is taken is by grants or by claims."""
    gpu, taken = state.gpu, state.taken.plus(claimed)
    return GpuCard(
        uuid=gpu.uuid,
        index=gpu.index,
        model=gpu.model,
        memory_mib=gpu.memory_mib,
        capacity_mib=gpu.capacity_mib,
        cores_capacity=gpu.cores_capacity,
        slots=gpu.slots,
        mode=mode_of(state),
        healthy=gpu.healthy,
        reason=gpu.reason,
        cordoned=gpu.cordoned,
        native=gpu.native_resource,
        taken_mib=taken.memory_mib,
        taken_cores=gpu.cores_capacity if taken.whole else taken.cores,
        taken_slots=taken.slots,
        stranded=stranded,
        parts=parts,
    )


def _figures(
    cluster: ClusterView, nodes: Mapping[str, NodeCard], pods: Mapping[str, PodCard], unread: int
) -> ClusterFigures:
    gpus = [gpu for node in nodes.values() for gpu in node.gpus]
    stranded = [gpu for gpu in gpus if gpu.stranded]
    pricing = cluster.config.pricing
    costs = [_cost_per_hour(gpu, pricing) for gpu in gpus]
    priced = [cost for cost in costs if cost is not None]
    return ClusterFigures(
        cost_per_hour=round(sum(priced), 4) if priced else None,
        currency=pricing.currency,
        unpriced_gpus=costs.count(None),
        nodes=len(nodes),
        gpus=len(gpus),
        idle_gpus=sum(not gpu.mode and not gpu.native and not gpu.parts for gpu in gpus),
        unhealthy_gpus=sum(not gpu.healthy for gpu in gpus),
        cordoned_gpus=sum(gpu.cordoned for gpu in gpus),
        memory_mib=sum(gpu.capacity_mib for gpu in gpus),
        granted_mib=sum(gpu.taken_mib for gpu in gpus),
        cores=sum(gpu.cores_capacity for gpu in gpus),
        granted_cores=sum(gpu.taken_cores for gpu in gpus),
        stranded_gpus=len(stranded),
        stranded_mib=sum(max(0, gpu.capacity_mib - gpu.taken_mib) for gpu in stranded),
        running_pods=sum(card.state == RUNNING for card in pods.values()),
        waiting_pods=sum(card.state in _WAITING for card in pods.values()),
        left_out=unread,
        configuration=cluster.config_refusal,
    )


def _cost_per_hour(gpu: GpuCard, pricing: Pricing) -> float | None:
    """Of what is granted, as `lamina cost` counts it; None without a price."""
    memory, compute_time = (pricing.per_hour(gpu.model, part) for part in ("memory", "compute"))
    if memory is None or compute_time is None:
        return None
    parts = gpu.taken_mib / max(1, gpu.capacity_mib), gpu.taken_cores / max(1, gpu.cores_capacity)
    return memory * min(1.0, parts[0]) + compute_time * min(1.0, parts[1])
