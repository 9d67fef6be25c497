"""Pod groups, whose members are to run together: the names by which pods belong to one.

label scheduling.x-k8s.io/pod-group       PodGroup of scheduling.x-k8s.io (scheduler-plugins)
annotation scheduling.k8s.io/group-name   PodGroup of scheduling.volcano.sh (Volcano)
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
VOLCANO = "scheduling.volcano.sh"
SCHEDULER_PLUGINS = "scheduling.x-k8s.io"


class GroupName(NamedTuple):
    """Which group a pod belongs to; `api` is the API group of the PodGroup."""

    api: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"pod group {self.namespace}/{self.name}"


def group_of(pod: Mapping[str, Any]) -> GroupName | None:
    """The pod's group, or None. A pod that has both names is in the group of its label."""
    meta = pod.get("metadata") or {}
    namespace = str(meta.get("namespace") or "")
    if name := (meta.get("labels") or {}).get(GROUP_LABEL):
        return GroupName(SCHEDULER_PLUGINS, namespace, str(name))
    if name := (meta.get("annotations") or {}).get(GROUP_ANNOTATION):
        return GroupName(VOLCANO, namespace, str(name))
    return None
