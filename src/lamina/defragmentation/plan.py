"""Which pods to move so that GPUs become idle."""

from collections.abc import Collection, Iterator
from functools import partial

from lamina.core.gpus import Inventory
from lamina.core.host_size import UNKNOWN_HOST, HostSize, asked_by, offered_by
from lamina.core.ledger import taken_by
from lamina.core.pod_status import is_over
from lamina.core.requests import PodRequest
from lamina.defragmentation.placed_again import Place, PlacedAgain
from lamina.errors import BadInput
from lamina.ledger.pods import parse_pod
from lamina.ledger.ungranted_pods import largest_holdings, running_request
from lamina.placement.eviction.defrag import DefragStep, Resident, advise
from lamina.ports.kube import Object
from lamina.report.cluster_view import ClusterView
from lamina.simulation.replay import Replay
from lamina.simulation.workload import SimNode, SimPod


def plan(cluster: ClusterView, max_moves: int, staying: Collection[str] = frozenset()) -> Iterator[DefragStep]:
    """The steps with at most this many moves, each computed when it is asked for.

    `staying` are UIDs of pods that must not be moved.
    """
    nodes = {name: inventory.gpus for name, inventory in cluster.inventories.items()}
    residents = list(_residents(cluster, staying))
    return advise(nodes, residents, most_moves=max_moves, place_again=_placed_again(cluster, residents))


def _placed_again(cluster: ClusterView, residents: Collection[Resident]) -> PlacedAgain:
    """The scheduler of this cluster, for trial."""
    nodes = [_simulated(cluster, name, inventory) for name, inventory in sorted(cluster.inventories.items())]
    rows = {node.name: row for row, node in enumerate(nodes)}
    pods = {pod.name: pod for pod in map(partial(_sim_pod, cluster), cluster.pods)}
    replay = Replay(nodes, (), cluster.config.placement.node_policy, cluster.config.placement.gpu_policy)
    for name, row in rows.items():
        replay.capacity.take(row, SimPod(name=""), dict(cluster.ledger.totals.taken(name)))
    for pod in pods.values():
        if pod.node in rows:
            replay.capacity.take(rows[pod.node], pod, {})
    for row in rows.values():
        replay.chooser.changed(row)
    replay.chooser.learn(pods.values())
    known = [each for each in residents if each.request is not None and each.name in pods and each.node in rows]
    return PlacedAgain(
        replay, [Place(pods[each.name], rows[each.node], each.taken, not each.elsewhere) for each in known]
    )


def _simulated(cluster: ClusterView, name: str, inventory: Inventory) -> SimNode:
    """A node that was not read is taken to have CPU and memory enough."""
    node = cluster.hosts.node(name) if cluster.hosts is not None else None
    offered = UNKNOWN_HOST if node is None else offered_by(node)
    return SimNode(name=name, cpu=offered.cpu, memory_mib=offered.memory_mib, gpus=inventory.gpus)


def _sim_pod(cluster: ClusterView, pod: Object) -> SimPod:
    """A pod that has ended takes nothing."""
    meta, size = pod["metadata"], HostSize() if is_over(pod) else asked_by(pod)
    return SimPod(
        name=f"{meta['namespace']}/{meta['name']}",
        cpu=size.cpu,
        memory_mib=size.memory_mib,
        request=_request(cluster, pod),
        node=pod["spec"].get("nodeName") or "",
    )


def _residents(cluster: ClusterView, staying: Collection[str]) -> Iterator[Resident]:
    """The pods that hold GPUs. A pod without a controller, or that is terminating, is not movable."""
    for pod in cluster.pods:
        meta, spec = pod["metadata"], pod["spec"]
        name = f"{meta['namespace']}/{meta['name']}"
        grant = cluster.grants.get(meta["uid"])
        if cluster.ledger.pod(meta["uid"]).ended:
            continue
        if grant is None:
            yield from _without_grant(cluster, pod, name)
            continue
        owned = any(owner.get("controller") for owner in meta.get("ownerReferences") or ())
        yield Resident(
            name=name,
            request=_request(cluster, pod),
            node=grant.node,
            taken=taken_by(grant.containers),
            movable=owned and not meta.get("deletionTimestamp") and meta["uid"] not in staying,
            elsewhere=not any(spec.get(field) for field in ("nodeSelector", "affinity", "topologySpreadConstraints")),
        )


def _request(cluster: ClusterView, pod: Object) -> PodRequest | None:
    try:
        return cluster.request(pod)
    except BadInput:
        return None


def _without_grant(cluster: ClusterView, pod: Object, name: str) -> Iterator[Resident]:
    """A pod that runs without a grant: it counts with the most that it can hold, and is not movable."""
    node = pod["spec"].get("nodeName") or ""
    request, inventory = running_request(parse_pod(pod, cluster.config)), cluster.inventories.get(node)
    if request is not None and inventory is not None:
        yield Resident(name, None, node, largest_holdings(request.request, inventory), movable=False)
