"""Table rows of pods. STATUS shows the most informative reason among the containers, not the phase."""

from typing import Any

from lamina.ports.kube import Object
from lamina.ports.kube.moments import seconds_of
from lamina_lab.api.printing.ages import age
from lamina_lab.api.printing.common import Layout, column, conditions, name, own_age, wide


def _cells(pod: Object, now: float) -> list[Any]:
    spec, status = pod["spec"], pod.get("status") or {}
    ready, total = _ready(pod)
    gates = spec.get("readinessGates") or []
    held = conditions(pod)
    open_gates = sum(1 for gate in gates if held.get(gate["conditionType"], {}).get("status") == "True")
    return [
        name(pod),
        f"{ready}/{total}",
        reason(pod),
        _restarts(pod, now),
        own_age(pod, now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        f"{open_gates}/{len(gates)}" if gates else "<none>",
    ]


PODS = Layout(
    (
        column("Name"),
        column("Ready"),
        column("Status"),
        column("Restarts"),
        column("Age"),
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ),
    _cells,
)


def reason(pod: Object) -> str:
    """What the STATUS column shows."""
    status = pod.get("status") or {}
    shown = status.get("reason") or status.get("phase") or ""
    held = conditions(pod)
    if held.get("PodScheduled", {}).get("reason") == "SchedulingGated":
        shown = "SchedulingGated"
    initializing = _initializing(pod)
    if initializing and held.get("Initialized", {}).get("status") != "True":
        shown = initializing
    else:
        shown = _running_reason(pod, shown)
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return str(shown)


def _initializing(pod: Object) -> str:
    """Why the init containers are not done; empty if they are."""
    status = pod.get("status") or {}
    sidecars = _sidecars(pod)
    for at, container_status in enumerate(status.get("initContainerStatuses") or []):
        state = container_status.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting")
        if terminated and terminated.get("exitCode") == 0:
            continue
        if container_status.get("name") in sidecars and container_status.get("started"):
            continue
        if terminated:
            return "Init:" + _end(terminated)
        if waiting and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{at}/{len(pod['spec'].get('initContainers') or [])}"
    return ""


def _running_reason(pod: Object, shown: str) -> str:
    running = False
    for status in reversed((pod.get("status") or {}).get("containerStatuses") or []):
        state = status.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            shown = waiting["reason"]
        elif terminated:
            shown = _end(terminated)
        elif status.get("ready") and "running" in state:
            running = True
    if shown == "Completed" and running:
        return "Running" if conditions(pod).get("Ready", {}).get("status") == "True" else "NotReady"
    return shown


def _end(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _sidecars(pod: Object) -> set[str]:
    """Init containers that keep running."""
    return {
        init_container["name"]
        for init_container in pod["spec"].get("initContainers") or []
        if init_container.get("restartPolicy") == "Always"
    }


def _counted(pod: Object) -> list[Object]:
    """Statuses of the containers that READY and RESTARTS count."""
    status, sidecars = pod.get("status") or {}, _sidecars(pod)
    first = [entry for entry in status.get("initContainerStatuses") or [] if entry.get("name") in sidecars]
    return first + list(status.get("containerStatuses") or [])


def _ready(pod: Object) -> tuple[int, int]:
    total = len(pod["spec"].get("containers") or []) + len(_sidecars(pod))
    ready = sum(1 for status in _counted(pod) if status.get("ready") and "running" in (status.get("state") or {}))
    return ready, total


def _restarts(pod: Object, now: float) -> str:
    counted = _counted(pod)
    if _initializing(pod):
        counted = (pod.get("status") or {}).get("initContainerStatuses") or []
    restarts = sum(status.get("restartCount", 0) for status in counted)
    ends = [((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for status in counted]
    moments = sorted((moment, end) for end in ends if end and (moment := seconds_of(end)) is not None)
    return f"{restarts} ({age(moments[-1][1], now)} ago)" if restarts and moments else str(restarts)
