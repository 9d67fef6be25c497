"""The shapes of pods and workloads: what is read of them has the types that its readers expect.

The API server checks this itself. Files, and other programs that call Lamina in its place, may hold anything.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from lamina.errors import BadInput

_Amounts = dict[str, str | int | float | bool | None]


class _Resources(Struct):
    limits: _Amounts | None = None
    requests: _Amounts | None = None
    claims: list[dict[str, Any]] | None = None


class _Container(Struct):
    name: str
    resources: _Resources | None = None
    restartPolicy: str | None = None
    env: list[dict[str, Any]] | None = None
    volumeMounts: list[dict[str, Any]] | None = None
    securityContext: dict[str, Any] | None = None


class _Toleration(Struct):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class _NodeRequirement(Struct):
    key: str
    operator: str
    values: list[str] | None = None


class _NodeTerm(Struct):
    matchExpressions: list[_NodeRequirement] | None = None
    matchFields: list[_NodeRequirement] | None = None


class _NodeTerms(Struct):
    nodeSelectorTerms: list[_NodeTerm] | None = None


class _NodeAffinity(Struct):
    requiredDuringSchedulingIgnoredDuringExecution: _NodeTerms | None = None
    preferredDuringSchedulingIgnoredDuringExecution: list[dict[str, Any]] | None = None


class _PodAffinity(Struct):
    requiredDuringSchedulingIgnoredDuringExecution: list[dict[str, Any]] | None = None
    preferredDuringSchedulingIgnoredDuringExecution: list[dict[str, Any]] | None = None


class _Affinity(Struct):
    nodeAffinity: _NodeAffinity | None = None
    podAffinity: _PodAffinity | None = None
    podAntiAffinity: _PodAffinity | None = None


class _PodSpec(Struct):
    containers: list[_Container]
    initContainers: list[_Container] | None = None
    ephemeralContainers: list[_Container] | None = None
    schedulerName: str | None = None
    nodeName: str | None = None
    runtimeClassName: str | None = None
    priority: int | None = None
    resources: _Resources | None = None
    resourceClaims: list[dict[str, Any]] | None = None
    overhead: _Amounts | None = None
    nodeSelector: dict[str, str] | None = None
    tolerations: list[_Toleration] | None = None
    affinity: _Affinity | None = None
    topologySpreadConstraints: list[dict[str, Any]] | None = None
    schedulingGates: list[dict[str, Any]] | None = None


class _ObjectMetadata(Struct):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _PodStatus(Struct):
    phase: str | None = None
    containerStatuses: list[dict[str, Any]] | None = None
    initContainerStatuses: list[dict[str, Any]] | None = None


class _Pod(Struct):
    spec: _PodSpec
    metadata: _ObjectMetadata | None = None
    status: _PodStatus | None = None


class _JobSpec(Struct):
    template: _Pod


class _JobTemplate(Struct):
    spec: _JobSpec


class _WorkloadSpec(Struct):
    template: _Pod | None = None
    jobTemplate: _JobTemplate | None = None


class _Workload(Struct):
    spec: _WorkloadSpec


def check_pod(pod: Mapping[str, Any]) -> None:
    """Raises BadInput for a pod that no API server would accept, as far as it is read."""
    _check(pod, _Pod, "pod")


def check_workload(workload: Mapping[str, Any]) -> None:
    """Raises BadInput for an object without a template of pods, or with one that no API server would accept."""
    _check(workload, _Workload, "workload")


def _check(obj: Mapping[str, Any], kind: type[Struct], what: str) -> None:
    try:
        msgspec.convert(obj, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise BadInput(f"the {what} is malformed: {error}") from error
