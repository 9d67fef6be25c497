"""Why a pod waits, in sentences, from what the cluster tells."""

from collections.abc import Iterator

from lamina.cli.cluster import Cluster
from lamina.cli.counting import counted
from lamina.dialects.groups import group_of
from lamina.errors import BadInput
from lamina.placement import Explanation
from lamina.ports.kube import Object

_SHOWN_NODES = 5


def why(cluster: Cluster, namespace: str, name: str) -> Iterator[str]:
    """The lines of `lamina why`. Raises BadInput where there is no such pod."""
    pod = next((pod for pod in cluster.pods if _named(pod, namespace, name)), None)
    if pod is None:
        raise BadInput(f"there is no pod {name} in namespace {namespace}")
    node = pod["spec"].get("nodeName")
    if node:
        yield from _on_node(pod, node)
        return
    try:
        explanation = cluster.explain(pod)
        beyond = cluster.over_quota(pod)
    except BadInput as error:
        yield f"{name} cannot be placed: {error}"
        return
    if beyond:
        yield f"{name} waits: {beyond}."
        return
    yield from _unplaced(pod, explanation)
    if said := _scheduler_says(pod):
        yield f"The scheduler says: {said}"


def waiting_because(cluster: Cluster, pod: Object) -> str:
    """One sentence for a table: empty for a pod that waits for nothing."""
    if pod["spec"].get("nodeName"):
        return "; ".join(_container_reasons(pod))
    try:
        if beyond := cluster.over_quota(pod):
            return beyond
        explanation = cluster.explain(pod)
    except BadInput as error:
        return str(error)
    if explanation is None or explanation.fitting:
        return _scheduler_says(pod) or "it has not been tried yet"
    return explanation.summary


def _named(pod: Object, namespace: str, name: str) -> bool:
    return (pod["metadata"]["namespace"], pod["metadata"]["name"]) == (namespace, name)


def _on_node(pod: Object, node: str) -> Iterator[str]:
    name, phase = pod["metadata"]["name"], pod.get("status", {}).get("phase", "Unknown")
    reasons = list(_container_reasons(pod))
    if not reasons:
        yield f"{name} does not wait: it is {phase} on node {node}."
        return
    yield f"{name} is on node {node} ({phase}), and its containers wait:"
    yield from (f"  {reason}" for reason in reasons)


def _container_reasons(pod: Object) -> Iterator[str]:
    """What each container that does not run says of itself."""
    status = pod.get("status", {})
    for each in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        waiting = each.get("state", {}).get("waiting")
        if waiting and waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            yield f"{each['name']}: {waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
    if status.get("phase") == "Failed" and status.get("message"):
        yield str(status["message"])


def _unplaced(pod: Object, explanation: Explanation | None) -> Iterator[str]:
    name = pod["metadata"]["name"]
    if explanation is None and (names := counted(pod)):
        yield f"{name} waits for {' and '.join(names)}, which kube-scheduler counts by itself."
        return
    if explanation is None:
        yield f"{name} asks for no GPU; what it waits for is not ours to say."
        return
    if explanation.fitting:
        alone = "" if group_of(pod) is None else " by itself"
        yield f"{name} would fit now{alone}, as far as GPUs go: {explanation.summary}."
    else:
        yield f"{name} waits: {explanation.summary}."
    if not explanation.fitting and sum(len(group.nodes) for group in explanation.groups) == 1:
        return  # the summary has said it of the only node
    for group in explanation.groups:
        shown = ", ".join(group.nodes[:_SHOWN_NODES])
        more = len(group.nodes) - _SHOWN_NODES
        yield f"  {shown}{f' and {more} more' if more > 0 else ''}: {group.reason}"


def _scheduler_says(pod: Object) -> str:
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", ""))
    return ""
