"""The state of a pod after a restart of the kubelet, from what was reported to the API server.

Its containers ended with the earlier kubelet, so those that were running are recorded as ended.
"""

from collections.abc import Mapping
from typing import Any

from lamina.ports.kube.moments import seconds_of
from lamina_lab.kubelet.model.records import Container, State, Terminated, Waiting, containers_of

LOST = "ContainerStatusUnknown"
LOST_MESSAGE = "The container ended with the kubelet that ran it"


def was_admitted(pod: Mapping[str, Any]) -> bool:
    """Whether an earlier kubelet admitted the pod."""
    return bool((pod.get("status") or {}).get("startTime"))


def is_finished(pod: Mapping[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def restored(pod: Mapping[str, Any], now: float) -> list[Container]:
    """The records of `pod` according to its status."""
    status = pod.get("status") or {}
    fields = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    statuses = {entry["name"]: entry for field in fields for entry in status.get(field) or ()}
    containers = containers_of(pod["spec"])
    for container in containers:
        if entry := statuses.get(container.name):
            container.restarts = entry.get("restartCount") or 0
            container.container_id = str(entry.get("containerID") or "").rpartition("//")[2]
            container.state = _state(entry.get("state") or {}, container, now)
            last = _state(entry.get("lastState") or {}, container, now)
            container.last = last if isinstance(last, Terminated) else None
    return containers


def _state(reported: Mapping[str, Any], container: Container, now: float) -> State:
    if detail := reported.get("terminated"):
        return Terminated(
            exit_code=detail.get("exitCode") or 0,
            reason=detail.get("reason") or "",
            message=detail.get("message") or "",
            started_at=seconds_of(detail.get("startedAt") or "") or 0.0,
            finished_at=seconds_of(detail.get("finishedAt") or "") or now,
            container_id=str(detail.get("containerID") or "").rpartition("//")[2],
        )
    if detail := reported.get("running"):
        began = seconds_of(detail.get("startedAt") or "") or now
        return Terminated(137, LOST, now, began, LOST_MESSAGE, container_id=container.container_id)
    detail = reported.get("waiting") or {}
    return Waiting(detail.get("reason") or "ContainerCreating", detail.get("message") or "")
