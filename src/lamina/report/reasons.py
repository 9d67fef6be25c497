"""Why a pod is pending, in sentences, from one reading of the cluster."""

from collections.abc import Iterator
from enum import StrEnum

from lamina.core.ledger import taken_by
from lamina.placement import Explanation
from lamina.ports.kube import Object
from lamina.report.cluster_use import ClusterUse
from lamina.report.cluster_view import ClusterView
from lamina.report.native_capacity import counted, native_lines
from lamina.report.shares import ShareRow, held_shares

_SHOWN_NODES = 5
_SHOWN_SURVIVORS = 5
_SHOWN_HOLDERS = 5
_NO_ANSWER = "kube-scheduler had no answer from the controller of Lamina; see `lamina doctor`"
"""In the place of messages that name the address of the extender, which tells a user nothing."""
CREATED = "its containers are being created"
"""What is said of a pod on a node before anything is known to keep it from starting."""
_CREATING = (None, "ContainerCreating", "PodInitializing")
"""Why containers wait that nothing keeps from starting."""


class Obstacle(StrEnum):
    """What keeps a pod from running, for programs."""

    NONE = ""
    CONTAINERS = "containers"
    HELD_BACK = "held-back"
    REFUSED = "refused"
    QUOTA = "quota"
    CLAIMS = "claims"
    GROUP = "group"
    NODES = "nodes"
    SCHEDULER = "scheduler"


def why_pod(cluster: ClusterView, pod: Object) -> Iterator[str]:
    """The lines about this pod of the cluster."""
    yield from obstacle_and_lines(cluster, pod)[1]


def obstacle_and_lines(cluster: ClusterView, pod: Object) -> tuple[Obstacle, list[str]]:
    """What keeps this pod of the cluster from running, and the lines that say so."""
    namespace, name, node = pod["metadata"]["namespace"], pod["metadata"]["name"], pod["spec"].get("nodeName")
    if node:
        waits = Obstacle.CONTAINERS if any(_container_reasons(cluster, pod)) else Obstacle.NONE
        return waits, [*_on_node(cluster, pod, node), *cluster.taken_tickets.line_of(pod)]
    parsed, rules = cluster.parse(pod), cluster.rules
    if not_placed := cluster.not_placed(pod):
        return Obstacle.HELD_BACK, [f"{name} {not_placed}."]
    request = parsed.request
    if refusal := parsed.problem or (request and rules.without_grant(parsed, request)):
        return Obstacle.REFUSED, [f"{name} cannot be placed: {refusal}"]
    if request and (over := rules.over_quota(parsed, request)):
        return Obstacle.QUOTA, [f"{name} is pending: {over}.", *_survivors(cluster, namespace)]
    return _obstacle(cluster, pod), [*_waiting_lines(cluster, pod)]


def _obstacle(cluster: ClusterView, pod: Object) -> Obstacle:
    """That of a pod without a node which only its claims, its group or the nodes keep waiting."""
    if cluster.claims.problem(pod):
        return Obstacle.CLAIMS
    if cluster.group_refusal(pod):
        return Obstacle.GROUP
    explanation = cluster.explain(pod)
    return Obstacle.SCHEDULER if explanation is None or explanation.fitting else Obstacle.NODES


def _waiting_lines(cluster: ClusterView, pod: Object) -> Iterator[str]:
    explanation, lacking = cluster.explain(pod), cluster.group_refusal(pod)
    if problem := cluster.claims.problem(pod) or lacking:
        yield f"{pod['metadata']['name']} is pending: {problem}."
    else:
        yield from _unplaced(cluster, pod, explanation)
    if explanation is None:
        yield from native_lines(pod, cluster.lacking_devices(pod, None), cluster.inventories.values())
    if explanation is not None and (lacking or not (explanation.fitting or problem)):
        yield from _survivors(cluster)
        yield from cluster.hold_lines[:_SHOWN_HOLDERS]
        yield from cluster.lines_for_claims if cluster.claims.of(pod) else cluster.claim_lines
        yield from list(cluster.taken_tickets.lines())[:_SHOWN_HOLDERS]
    if message := _scheduler_message(pod):
        yield f"Scheduler: {message}"


def pod_named(cluster: ClusterView, namespace: str, name: str) -> Object | None:
    """The pod of that name, if there is one."""
    return next((pod for pod in cluster.pods if _named(pod, namespace, name)), None)


def waiting_because(cluster: ClusterView, pod: Object) -> str:
    """One sentence for a table; empty for a pod that is not waiting."""
    if pod["spec"].get("nodeName"):
        return "; ".join(_container_reasons(cluster, pod))
    if refusal := cluster.refused_everywhere(pod):
        return refusal
    explanation = cluster.explain(pod)
    if explanation is None or explanation.fitting:
        return cluster.group_refusal(pod) or _scheduler_message(pod) or "not yet tried by the scheduler"
    return explanation.summary


def _named(pod: Object, namespace: str, name: str) -> bool:
    return (pod["metadata"]["namespace"], pod["metadata"]["name"]) == (namespace, name)


def all_run(pod: Object) -> bool:
    """Whether all containers of the pod run, except those that run before the others."""
    status = pod.get("status") or {}
    states = [each.get("state") or {} for each in status.get("containerStatuses") or ()]
    return status.get("phase") == "Running" and all("running" in state for state in states)


def _on_node(cluster: ClusterView, pod: Object, node: str) -> Iterator[str]:
    name, phase = pod["metadata"]["name"], pod.get("status", {}).get("phase", "Unknown")
    reasons = list(_container_reasons(cluster, pod))
    if not reasons:
        yield f"{name} is not pending: it is {phase} on node {node}."
        yield from map(_held_line, held_shares(pod, cluster, ClusterUse()))
        return
    yield f"{name} is on node {node} ({phase}), and its containers are waiting:"
    yield from (f"  {reason}" for reason in reasons)


def _held_line(share: ShareRow) -> str:
    gpu = share.gpu if share.index is None else share.index
    return f"  {share.container} has {share.memory_mib} MiB of GPU {gpu}; compute: {share.compute}"


def _container_reasons(cluster: ClusterView, pod: Object) -> Iterator[str]:
    """The state of each container that is not running, or why containers cannot be created."""
    status = pod.get("status", {})
    named = False
    for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        waiting = container.get("state", {}).get("waiting")
        if waiting and waiting.get("reason") not in _CREATING:
            yield f"{container['name']}: {waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
            named = True
    if status.get("phase") == "Failed":
        yield str(status.get("message") or status.get("reason") or "it has failed")
    elif status.get("phase") == "Pending" and not named:
        yield cluster.claims.not_prepared(pod) or CREATED


def _unplaced(cluster: ClusterView, pod: Object, explanation: Explanation | None) -> Iterator[str]:
    name = pod["metadata"]["name"]
    if explanation is None and (names := counted(pod)):
        yield f"{name} requests {' and '.join(names)}, which kube-scheduler counts itself."
        return
    if explanation is None:
        yield f"{name} requests no GPU; `kubectl describe pod` shows why it is pending."
        return
    if explanation.fitting:
        known = "with" if cluster.groups.knows(cluster.parse(pod)) else "without"
        alone = "" if cluster.parse(pod).group is None else f" {known} the rest of its group"
        only = "" if cluster.hosts is not None else ", as far as GPUs are concerned"
        if cluster.claims.of(pod) and not cluster.claims.is_certain(pod):
            only = f"{only}, if kube-scheduler finds devices for its claims, which is not known here"
        yield f"{name} would fit now{alone}{only}: {explanation.summary}."
    else:
        yield f"{name} is pending: {explanation.summary}."
    yield from node_lines(explanation)


def node_lines(explanation: Explanation) -> Iterator[str]:
    """A line for each group of nodes that do not fit, unless the summary already names the only node."""
    if not explanation.fitting and sum(len(group.nodes) for group in explanation.groups) == 1:
        return
    for group in explanation.groups:
        shown = ", ".join(group.nodes[:_SHOWN_NODES])
        more = len(group.nodes) - _SHOWN_NODES
        yield f"  {shown}{f' and {more} more' if more > 0 else ''}: {group.reason}"


def _survivors(cluster: ClusterView, namespace: str | None = None) -> Iterator[str]:
    """What pods that have ended still hold, in one namespace or in all."""
    survivors = list(cluster.survivors(namespace))
    for node, survivor in survivors[:_SHOWN_SURVIVORS]:
        indices = {gpu.uuid: gpu.index for gpu in cluster.inventories[node].gpus}
        taken = taken_by(survivor.containers)
        gpus = " and ".join(str(indices.get(gpu, gpu)) for gpu in taken)
        memory_mib = sum(held.memory_mib for held in taken.values())
        name = f"{survivor.namespace}/{survivor.pod}"
        yield f"  pod {name} is deleted, but its processes still hold {memory_mib} MiB of GPU {gpus} of node {node}"
    if len(survivors) > _SHOWN_SURVIVORS:
        yield f"  the processes of {len(survivors) - _SHOWN_SURVIVORS} more deleted pods still run"


def _scheduler_message(pod: Object) -> str:
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            message = str(condition.get("message", ""))
            return _NO_ANSWER if "://" in message else message
    return ""
