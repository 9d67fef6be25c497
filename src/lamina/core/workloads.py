"""The workload that a pod belongs to: what people named, such as a Deployment, rather than what was made from it."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_HASH = "pod-template-hash"
_SCHEDULED = re.compile(r"-\d{8,}$")
"""What a CronJob adds to its name for each of its Jobs."""
_MAX_KIND, _MAX_NAME = 63, 253


class Workload(Struct, frozen=True, order=True):
    """Kind and name. Both are empty where the workload of a pod is not known."""

    kind: str
    name: str


UNKNOWN = Workload("", "")


def workload_of(pod: Mapping[str, Any]) -> Workload:
    """The controller of a pod, or the pod itself. Its Deployment and CronJob are known by the names of what they make.

    A tenant writes owner references, so they name something in the pod's own namespace, real or not.
    """
    meta = pod["metadata"]
    owner = next((each for each in meta.get("ownerReferences") or () if each.get("controller")), None)
    if owner is None:
        return _bounded("Pod", meta["name"])
    kind, name = str(owner.get("kind") or ""), str(owner.get("name") or "")
    made_for = f"-{(meta.get('labels') or {}).get(_HASH)}"
    if kind == "ReplicaSet" and name.endswith(made_for):
        return _bounded("Deployment", name.removesuffix(made_for))
    if kind == "Job" and _SCHEDULED.search(name):
        return _bounded("CronJob", _SCHEDULED.sub("", name))
    return _bounded(kind, name)


def _bounded(kind: str, name: str) -> Workload:
    return Workload(kind[:_MAX_KIND], name[:_MAX_NAME])
