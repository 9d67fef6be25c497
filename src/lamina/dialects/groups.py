"""Pod groups, whose members are to run together: the names by which pods belong to one.

spec.schedulingGroup.podGroupName         PodGroup of scheduling.k8s.io (Kubernetes 1.36, where it is enabled)
label scheduling.x-k8s.io/pod-group       PodGroup of scheduling.x-k8s.io (scheduler-plugins)
annotation scheduling.k8s.io/group-name   PodGroup of scheduling.volcano.sh (Volcano)
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from lamina.core.object_names import MAX_LENGTH, is_object_name
from lamina.dialects.containers import quote
from lamina.errors import BadInput

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
VOLCANO = "scheduling.volcano.sh"
SCHEDULER_PLUGINS = "scheduling.x-k8s.io"
KUBERNETES = "scheduling.k8s.io"
_WHERE = {
    KUBERNETES: "spec.schedulingGroup.podGroupName",
    SCHEDULER_PLUGINS: f"label {GROUP_LABEL}",
    VOLCANO: f"annotation {GROUP_ANNOTATION}",
}
GROUP_APIS = frozenset(_WHERE)
"""API groups with a kind PodGroup."""


class GroupName(NamedTuple):
    """Which group a pod belongs to; `api` is the API group of the PodGroup."""

    api: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"pod group {self.namespace}/{self.name}"

    def check(self) -> None:
        """Raises BadInput for a name that no PodGroup can have. Annotations may contain any text."""
        if not is_object_name(self.name):
            raise BadInput(
                f"{_WHERE[self.api]} must be the name of a PodGroup, at most {MAX_LENGTH} lower-case letters, digits, "
                f"hyphens and periods, got {quote(self.name)}"
            )


def group_of(pod: Mapping[str, Any]) -> GroupName | None:
    """The pod's group, or None. Of several names, Kubernetes' own counts first, then the label."""
    meta = pod.get("metadata") or {}
    namespace = str(meta.get("namespace") or "")
    own = (pod.get("spec") or {}).get("schedulingGroup")
    if isinstance(own, Mapping) and (name := own.get("podGroupName")):
        return GroupName(KUBERNETES, namespace, str(name))
    if name := (meta.get("labels") or {}).get(GROUP_LABEL):
        return GroupName(SCHEDULER_PLUGINS, namespace, str(name))
    if name := (meta.get("annotations") or {}).get(GROUP_ANNOTATION):
        return GroupName(VOLCANO, namespace, str(name))
    return None
