"""A pod's status as Kubernetes writes it, from the records of its containers."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from lamina.ports.kube import Object
from lamina.ports.kube.moments import rfc3339
from lamina_lab.kubelet.model.records import Container, Kind, Running, State, Terminated, Waiting, of_kind
from lamina_lab.kubelet.pods.pod_plan import failed_init, initialized

RUNTIME = "lamina"


class PodFailure(Struct, frozen=True):
    """Why a whole pod failed, if its containers are not the cause."""

    reason: str
    message: str


class PodProgress(Struct, frozen=True, kw_only=True):
    """A pod on its node. `addresses` are the node's and the pod's; `ended`: nothing of the pod will run again."""

    addresses: tuple[str, str]
    started_at: float
    ended: bool
    failure: PodFailure | None


def phase(containers: Sequence[Container], policy: str, *, ended: bool) -> str:
    """Pending, Running, Succeeded or Failed. `ended` says that nothing of the pod will run again."""
    apps = of_kind(containers, Kind.APP)
    if failed_init(containers, policy):
        return "Failed" if ended else "Pending"
    if ended:
        good = all(app.completed for app in apps)
        return "Succeeded" if good else "Failed"
    if not initialized(containers) or any(isinstance(app.state, Waiting) and not app.last for app in apps):
        return "Pending"
    return "Running"


def pod_status(
    pod: Mapping[str, Any],
    containers: Sequence[Container],
    progress: PodProgress,
    *,
    now: float,
    before: Sequence[Mapping[str, Any]],
) -> Object:
    """The whole status, including conditions in `pod` that others wrote.

    `before` are the conditions last written, for the times of unchanged ones. They are not read from `pod`: the API
    server's answer lags behind, and two versions would replace each other forever.
    """
    spec = pod["spec"]
    policy = spec.get("restartPolicy", "Always")
    host_ip, pod_ip = progress.addresses
    failure, ended = progress.failure, progress.ended
    status: Object = {
        "phase": "Failed" if failure and ended else phase(containers, policy, ended=ended),
        "startTime": rfc3339(progress.started_at),
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "qosClass": qos_class(spec),
        "containerStatuses": [container_status(c) for c in of_kind(containers, Kind.APP)],
    }
    if inits := of_kind(containers, Kind.INIT, Kind.SIDECAR):
        status["initContainerStatuses"] = [container_status(c) for c in inits]
    if added := of_kind(containers, Kind.EPHEMERAL):
        status["ephemeralContainerStatuses"] = [container_status(c) for c in added]
    if failure:
        status |= {"reason": failure.reason, "message": failure.message}
    status["conditions"] = [*conditions(containers, status["phase"], now, before), *foreign_conditions(pod, now)]
    return status


def rejected_status(pod: Mapping[str, Any], failure: PodFailure, now: float) -> Object:
    """The status of a pod that the node did not admit. It has no containers."""
    return {
        "phase": "Failed",
        "reason": failure.reason,
        "message": f"Pod was rejected: {failure.message}",
        "startTime": rfc3339(now),
        "qosClass": qos_class(pod["spec"]),
        "conditions": foreign_conditions(pod, now),
    }


def container_status(container: Container) -> Object:
    spec = container.spec
    ready = container.ready or (container.kind is Kind.INIT and container.completed)
    return {
        "name": container.name,
        "state": _state(container.state),
        "lastState": _state(container.last) if container.last else {},
        "ready": ready and container.kind is not Kind.EPHEMERAL,  # no readiness of the pod depends on it
        "started": container.started,
        "restartCount": container.restarts,
        "image": spec.get("image", ""),
        "imageID": "",
        **({"containerID": f"{RUNTIME}://{container.container_id}"} if container.container_id else {}),
    }


def _state(state: State) -> Object:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        case Running(started_at):
            return {"running": {"startedAt": rfc3339(started_at)}}
        case Terminated():
            detail: Object = {
                "exitCode": state.exit_code,
                "reason": state.reason,
                "startedAt": rfc3339(state.started_at),
                "finishedAt": rfc3339(state.finished_at),
            }
            if state.message:
                detail["message"] = state.message
            if state.container_id:
                detail["containerID"] = f"{RUNTIME}://{state.container_id}"
            return {"terminated": detail}


_OWN = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def foreign_conditions(pod: Mapping[str, Any], now: float) -> list[Object]:
    """Conditions that others wrote. A pod that was bound without a scheduler gets PodScheduled here."""
    found = [dict(entry) for entry in (pod.get("status") or {}).get("conditions") or () if entry["type"] not in _OWN]
    if any(entry["type"] == "PodScheduled" for entry in found):
        return found
    since = (pod.get("metadata") or {}).get("creationTimestamp") or rfc3339(now)
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": since}
    return [scheduled, *found]


def conditions(
    containers: Sequence[Container], phase: str, now: float, before: Sequence[Mapping[str, Any]]
) -> list[Object]:
    """The kubelet's own conditions, with the times of unchanged ones."""
    old = {entry["type"]: entry for entry in before}
    done = phase in ("Succeeded", "Failed")
    live = not done and any(c.container_id for c in containers)
    parts: dict[str, tuple[bool, Object]] = {
        "PodReadyToStartContainers": (live, {}),
        "Initialized": _initialized(containers, phase),
        "Ready": _ready(containers, phase),
        "ContainersReady": _ready(containers, phase),
    }
    result = []
    for kind, (holds, detail) in parts.items():
        word = "True" if holds else "False"
        same = old.get(kind) or {}
        since = same.get("lastTransitionTime") if same.get("status") == word else None
        fixed = {"type": kind, "status": word, "lastProbeTime": None, "lastTransitionTime": since or rfc3339(now)}
        result.append(fixed | detail)
    return result


def _initialized(containers: Sequence[Container], phase: str) -> tuple[bool, Object]:
    if initialized(containers):
        return True, {"reason": "PodCompleted"} if phase == "Succeeded" else {}
    inits = of_kind(containers, Kind.INIT, Kind.SIDECAR)
    missing = [c.name for c in inits if not (c.started if c.kind is Kind.SIDECAR else c.completed)]
    return False, {
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{' '.join(missing)}]",
    }


def _ready(containers: Sequence[Container], phase: str) -> tuple[bool, Object]:
    if phase == "Succeeded":
        return False, {"reason": "PodCompleted"}
    if phase == "Failed":
        return False, {"reason": "PodFailed"}
    unready = [c.name for c in of_kind(containers, Kind.SIDECAR, Kind.APP) if not c.ready]
    if not unready:
        return True, {}
    message = f"containers with unready status: [{' '.join(unready)}]"
    return False, {"reason": "ContainersNotReady", "message": message}


def qos_class(spec: Mapping[str, Any]) -> str:
    """BestEffort without any CPU or memory, Guaranteed if every limit is set and equals its request."""
    amounts = []
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        resources = container.get("resources") or {}
        for name in ("cpu", "memory"):
            limit = (resources.get("limits") or {}).get(name)
            request = (resources.get("requests") or {}).get(name, limit)
            amounts.append((request, limit))
    if all(request is None and limit is None for request, limit in amounts):
        return "BestEffort"
    if all(limit is not None and str(request) == str(limit) for request, limit in amounts):
        return "Guaranteed"
    return "Burstable"
