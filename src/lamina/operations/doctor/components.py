"""Whether the pods of Lamina's components are ready, and if not, why. Pure."""

from collections.abc import Iterator

from lamina.core.component_names import documentation
from lamina.install.names import AGENT, MPS, PART_OF, chosen
from lamina.operations.doctor.finding import Finding, State
from lamina.ports.kube import Object

_STARTING = ("ContainerCreating", "PodInitializing")


def components(pods: list[Object], namespace: str) -> Iterator[Finding]:
    """`namespace` is Lamina's. No finding where no component is a pod, as in a lab."""
    own = [pod for pod in pods if pod["metadata"]["namespace"] == namespace and _is_component(pod)]
    failures = sorted(f"{pod['metadata']['name']}: {why}" for pod in own if (why := not_ready_reason(pod)))
    if failures:
        fix = f"run kubectl describe pod and kubectl logs in the namespace {namespace}"
        yield Finding("pods of Lamina", State.FAILED, "; ".join(failures), fix)
    elif own:
        yield Finding("pods of Lamina", State.OK, f"{len(own)} of {len(own)} ready")
    services, agents = _images(own, MPS), _images(own, AGENT)
    outdated = [
        f"{node} has {image}, and its agent {agents[node]}"
        for node, image in sorted(services.items())
        if agents.get(node, image) != image
    ]
    if outdated:
        fix = f"replace the pod when no program on its node uses MPS; see {documentation('how-to/upgrade.md')}"
        yield Finding("MPS service", State.WARNING, "; ".join(outdated), fix)


def _images(pods: list[Object], part: str) -> dict[str, str]:
    """The image of a component by node."""
    labels = chosen(part).items()
    of_part = [pod["spec"] for pod in pods if labels <= (pod["metadata"].get("labels") or {}).items()]
    return {spec["nodeName"]: spec["containers"][0]["image"] for spec in of_part if spec.get("nodeName")}


def _is_component(pod: Object) -> bool:
    return PART_OF.items() <= (pod["metadata"].get("labels") or {}).items()


def not_ready_reason(pod: Object) -> str:
    """Why the pod is not ready, empty if it is."""
    status = pod.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    if conditions.get("Ready", {}).get("status") == "True":
        return ""
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return f"not scheduled: {scheduled.get('message', '')}"
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    waiting = [one["state"]["waiting"] for one in containers if (one.get("state") or {}).get("waiting")]
    for state in waiting:
        if state.get("reason") not in _STARTING:
            return ": ".join(text for text in (state.get("reason"), state.get("message")) if text)
    return "starting" if waiting else "not ready"
