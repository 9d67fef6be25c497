"""Pod groups, whose members are to run together: the names by which pods belong to one.

spec.schedulingGroup.podGroupName         PodGroup of scheduling.k8s.io (Kubernetes 1.36, where it is enabled)
label scheduling.x-k8s.io/pod-group       PodGroup of scheduling.x-k8s.io (scheduler-plugins)
annotation scheduling.k8s.io/group-name   PodGroup of scheduling.volcano.sh (Volcano)

A pod that has none of them belongs to the group of its workload, see `workload_groups`.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from lamina.core.config import Config
from lamina.core.object_names import MAX_LENGTH, is_object_name
from lamina.dialects.containers import quote
from lamina.dialects.workload_groups import MIN_MEMBERS, WORKLOADS, owned_pod
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
_KIND, _PART = re.compile("[A-Za-z0-9]{1,63}"), re.compile("[ -~]{0,253}")
GROUP_APIS = frozenset(_WHERE)
"""API groups with a kind PodGroup."""


class GroupName(NamedTuple):
    """Which group a pod belongs to; `api` is the API group of the PodGroup or of the workload."""

    api: str
    namespace: str
    name: str
    kind: str = ""
    """The kind of a workload that has no PodGroup; empty for a PodGroup."""
    part: str = ""
    """Which part of the workload's pods, where these are several groups."""
    said: str = ""
    """The number of members by an annotation of the pods, as it is written; empty where the object has it."""

    def __str__(self) -> str:
        part = f" ({self.part})" if self.part else ""
        return f"{self.kind or 'pod group'} {self.namespace}/{self.name}{part}"

    @property
    def selector(self) -> str:
        """Labels that all of its pods have; empty where there are none."""
        if self.kind:
            label = next((each.name_label for each in WORKLOADS if each.kind == self.kind), "")
        else:
            label = GROUP_LABEL if self.api == SCHEDULER_PLUGINS else ""
        return f"{label}={self.name}" if label else ""

    def check(self) -> None:
        """Raises BadInput for a name that no PodGroup can have. Annotations may contain any text."""
        if not self.kind and not is_object_name(self.name):
            raise BadInput(
                f"{_WHERE[self.api]} must be the name of a PodGroup, at most {MAX_LENGTH} lower-case letters, digits, "
                f"hyphens and periods, got {quote(self.name)}"
            )


def group_of(pod: Mapping[str, Any], config: Config) -> GroupName | None:
    """The pod's group, or None. A PodGroup that it names counts first, then what its workload says."""
    return named_group(pod) or _group_of_workload(pod, config)


def _group_of_workload(pod: Mapping[str, Any], config: Config) -> GroupName | None:
    owned = owned_pod(pod)
    if owned is None or not (
        is_object_name(owned.name) and _KIND.fullmatch(owned.kind) and _PART.fullmatch(owned.part)
    ):
        return None  # what tenants may write there is no name
    meta = pod["metadata"]
    said = str((meta.get("annotations") or {}).get(MIN_MEMBERS, ""))
    if not said and (owned.workload is None or owned.kind not in config.placement.groups):
        return None
    return GroupName(owned.api, str(meta.get("namespace") or ""), owned.name, owned.kind, owned.part, said)


def named_group(pod: Mapping[str, Any]) -> GroupName | None:
    """The PodGroup that the pod names, or None. Of several names, Kubernetes' own counts first, then the label."""
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
