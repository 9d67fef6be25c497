"""Whether the pods of Lamina's own parts run, and if not, what Kubernetes says of them. Pure."""

from collections.abc import Iterator

from lamina.cli.finding import Finding, State
from lamina.install.names import NAMESPACE, PART_OF
from lamina.ports.kube import Object

_ON_THE_WAY = ("ContainerCreating", "PodInitializing")


def parts(pods: list[Object]) -> Iterator[Finding]:
    """Nothing where no part is a pod, as in a lab."""
    ours = [pod for pod in pods if pod["metadata"]["namespace"] == NAMESPACE and _carries(pod)]
    told = sorted(f"{pod['metadata']['name']}: {why}" for pod in ours if (why := trouble(pod)))
    if told:
        mend = f"kubectl describe pod, and kubectl logs, in the namespace {NAMESPACE} tell more"
        yield Finding("pods of Lamina", State.FAILED, "; ".join(told), mend)
    elif ours:
        yield Finding("pods of Lamina", State.OK, f"{len(ours)} of {len(ours)} are ready")


def _carries(pod: Object) -> bool:
    return PART_OF.items() <= (pod["metadata"].get("labels") or {}).items()


def trouble(pod: Object) -> str:
    """Why the pod is not ready, empty if it is."""
    status = pod.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    if conditions.get("Ready", {}).get("status") == "True":
        return ""
    placed = conditions.get("PodScheduled", {})
    if placed.get("status") == "False":
        return f"on no node: {placed.get('message', '')}"
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    waiting = [each["state"]["waiting"] for each in containers if (each.get("state") or {}).get("waiting")]
    for each in waiting:
        if each.get("reason") not in _ON_THE_WAY:
            return ": ".join(text for text in (each.get("reason"), each.get("message")) if text)
    return "it is starting" if waiting else "it is not ready"
