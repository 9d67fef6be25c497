"""What the status of a pod says about its containers, as kubelet last reported it."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from lamina.core.grants import MAX_CONTAINERS

_FIELDS = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def is_over(pod: Mapping[str, Any]) -> bool:
    """Whether all containers of the pod have ended, and none starts again."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def runs_containers(pod: Mapping[str, Any]) -> bool:
    """Whether a container runs.

    Kubelet reports all containers as terminated before it removes a pod. A pod that is deleted by force, or because its
    kubelet does not answer, is removed while its status says that they run.
    """
    return any("running" in state for state in _states(pod))


def has_terminated(pod: Mapping[str, Any]) -> bool:
    """Whether kubelet has reported that each container has terminated."""
    states = list(_states(pod))
    return bool(states) and all("terminated" in state for state in states)


def _states(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    status = pod.get("status") or {}
    for field in _FIELDS:
        for container in islice(status.get(field) or (), MAX_CONTAINERS):
            yield container.get("state") or {}
