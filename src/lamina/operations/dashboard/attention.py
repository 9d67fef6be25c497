"""What people should look at first, from the document that a viewer may see: faults, and pods that wait by reason."""

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from lamina.operations.dashboard.document import ClusterDocument, ClusterFigures, NodeCard, PodCard
from lamina.operations.dashboard.pod_cards import PENDING, REFUSED

MAX_ROWS = 20
"""Of each kind. One more says how many others there are."""
MAX_LONGEST = 5
MAX_GROUPS = 100
MAX_NAMES = 20
"""Pods of a group."""


class Link(Struct, frozen=True):
    """A `view` of the page and what it shows: the name of a node, or the UUID of a GPU or the UID of a pod."""

    view: str
    id: str


class AttentionRow(Struct, frozen=True, kw_only=True):
    """One thing to look at. `since` is in seconds since the epoch; None where it is not known."""

    kind: str
    text: str
    link: Link | None = None
    since: int | None = None


class WaitingGroup(Struct, frozen=True, kw_only=True):
    """Pods that wait, or workloads that are refused, for one reason. `pods` are UIDs and names of some of them."""

    title: str
    state: str
    reason: str
    ways_out: tuple[str, ...]
    count: int
    pods: tuple[tuple[str, str], ...]


def attention(document: ClusterDocument) -> tuple[AttentionRow, ...]:
    """The rows, in the order in which they matter."""
    return tuple(
        row
        for find in (_configuration, _nodes, _gpus, _out_of_memory, _longest)
        for row in _bounded(list(find(document)))
    )


def _bounded(rows: list[AttentionRow]) -> Iterator[AttentionRow]:
    yield from rows[:MAX_ROWS]
    if len(rows) > MAX_ROWS:
        yield AttentionRow(kind=rows[-1].kind, text=f"and {len(rows) - MAX_ROWS} more")


def _configuration(document: ClusterDocument) -> Iterator[AttentionRow]:
    figures: ClusterFigures = document.cluster
    if figures.configuration:
        yield AttentionRow(
            kind="configuration", text=f"The previous configuration is in force: {figures.configuration}"
        )
    if figures.left_out:
        yield AttentionRow(kind="pods", text=f"{_counted(figures.left_out, 'pod')} could not be read")
    if figures.nodes_without_inventory:
        nodes = _counted(figures.nodes_without_inventory, "node")
        yield AttentionRow(kind="agents", text=f"{nodes} with GPUs and no agent; `lamina doctor` names them")


def _nodes(document: ClusterDocument) -> Iterator[AttentionRow]:
    said: list[tuple[Callable[[NodeCard], bool], str]] = [
        (lambda node: not node.ready, "is not ready: kubelet does not report, or the node is gone"),
        (lambda node: node.cordoned, "is cordoned: Kubernetes places nothing new there"),
    ]
    for holds, text in said:
        for node in document.nodes.values():
            if holds(node):
                yield AttentionRow(kind="node", text=f"Node {node.name} {text}", link=Link("node", node.name))
    for node in document.nodes.values():
        for each in node.refused:
            yield AttentionRow(kind="node", text=f"Node {node.name} refuses {each}", link=Link("node", node.name))


def _gpus(document: ClusterDocument) -> Iterator[AttentionRow]:
    cards = [(node, gpu) for node in document.nodes.values() for gpu in node.gpus]
    for node, gpu in cards:
        if not gpu.healthy:
            since = gpu.health[-1].since if gpu.health else None
            text = f"GPU {gpu.index} of {node.name} is unhealthy: {gpu.reason}"
            yield AttentionRow(kind="gpu", text=text, link=Link("gpu", gpu.uuid), since=since)
    for node, gpu in cards:
        if gpu.cordoned:
            text = f"GPU {gpu.index} of {node.name} is cordoned"
            yield AttentionRow(kind="gpu", text=text, link=Link("gpu", gpu.uuid))


def _out_of_memory(document: ClusterDocument) -> Iterator[AttentionRow]:
    """Replicas of a workload, which are mostly refused alike, are one row, with the last refusal."""
    found: dict[tuple[str, str], list[tuple[str, str, PodCard]]] = {}
    for uid, pod in document.pods.items():
        if pod.refused_memory:
            found.setdefault((pod.namespace, pod.workload or uid), []).append((pod.refused_memory, uid, pod))
    for members in found.values():
        refusal, uid, pod = max(members, key=lambda each: each[:2])
        who = f"{pod.namespace}/{pod.name} is"
        if len(members) > 1:
            who = f"{_counted(len(members), 'pod')} of {pod.workload} in {pod.namespace} are"
        yield AttentionRow(kind="memory", text=f"{who} out of GPU memory. {refusal}", link=Link("pod", uid))


def _longest(document: ClusterDocument) -> Iterator[AttentionRow]:
    waiting = [(pod.created, uid, pod) for uid, pod in document.pods.items() if pod.state == PENDING and pod.created]
    for created, uid, pod in sorted(waiting, key=lambda each: each[:2])[:MAX_LONGEST]:
        text = f"{pod.namespace}/{pod.name} waits: {pod.reason or 'it is not known why'}"
        yield AttentionRow(kind="waiting", text=text, link=Link("pod", uid), since=created)


def waiting_groups(pods: Iterable[tuple[str, PodCard]]) -> tuple[WaitingGroup, ...]:
    """What waits or is refused, the largest groups first. Workloads are in groups of their own."""
    groups: dict[tuple[bool, str, str, tuple[str, ...]], list[tuple[str, PodCard]]] = {}
    for uid, pod in pods:
        if pod.state in (PENDING, REFUSED):
            groups.setdefault((_is_workload(pod), pod.state, pod.reason, pod.ways_out), []).append((uid, pod))
    found = sorted(groups.values(), key=lambda members: -len(members))
    return tuple(map(_group, found[:MAX_GROUPS]))


def _group(members: list[tuple[str, PodCard]]) -> WaitingGroup:
    first = members[0][1]
    title = f"{_counted(len(members), 'pod')} {first.state}"
    if _is_workload(first):
        title = f"{_counted(len(members), 'workload')} whose pods are refused"
    return WaitingGroup(
        title=title,
        state=first.state,
        reason=first.reason,
        ways_out=first.ways_out,
        count=len(members),
        pods=tuple((uid, f"{pod.namespace}/{pod.name}") for uid, pod in members[:MAX_NAMES]),
    )


def _is_workload(pod: PodCard) -> bool:
    """Workloads are named by kind and name; names of pods have no slash."""
    return "/" in pod.name


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
