"""A group as the cluster describes it: how many members it needs, how long it may take, and which pods they are."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lamina.dialects.containers import quote
from lamina.dialects.groups import KUBERNETES, SCHEDULER_PLUGINS, VOLCANO, GroupName
from lamina.dialects.workload_groups import MIN_MEMBERS, WORKLOADS
from lamina.errors import BadInput
from lamina.ledger.group_members import Members
from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import (
    JOB_SETS,
    JOBS,
    KUBERNETES_POD_GROUPS,
    LEADER_WORKER_SETS,
    PLUGIN_POD_GROUPS,
    PYTORCH_JOBS,
    RAY_CLUSTERS,
    VOLCANO_POD_GROUPS,
    Kube,
    NotFound,
)

MAX_MEMBERS = 1000
"""The most members that a group may need."""
_POD_GROUPS = {KUBERNETES: KUBERNETES_POD_GROUPS, SCHEDULER_PLUGINS: PLUGIN_POD_GROUPS, VOLCANO: VOLCANO_POD_GROUPS}
_WORKLOADS = {
    "JobSet": JOB_SETS,
    "LeaderWorkerSet": LEADER_WORKER_SETS,
    "RayCluster": RAY_CLUSTERS,
    "PyTorchJob": PYTORCH_JOBS,
    "Job": JOBS,
}
_COUNTS = {workload.kind: workload.count for workload in WORKLOADS}
_SHOWN_ABSENT, _DIGITS = 3, 10


class PodGroup(Struct, frozen=True, eq=False):
    """`needed` members must hold GPUs together; `bound` are the UIDs of those with a node, `waiting` the others, see
    `members`.

    None are needed where members are placed one by one. Those that wait are in the order in which they are placed.
    """

    needed: int
    timeout_s: float
    bound: frozenset[str]
    waiting: dict[str, ParsedPod]
    absent: tuple[str, ...] = ()
    """Why further pods do not count, one sentence each."""

    @property
    def incomplete(self) -> bool:
        """Whether members that are needed do not exist yet."""
        return len(self.bound) + len(self.waiting) < self.needed


async def read_spec(kube: Kube, name: GroupName) -> Mapping[str, Any]:
    """The spec of the PodGroup or the workload. It is empty for a deleted workload, whose pods are placed one by one.

    Raises BadInput where there is no such PodGroup; Outside.
    """
    if name.said:
        return {}
    resource = _WORKLOADS[name.kind] if name.kind else _POD_GROUPS[name.api]
    try:
        return (await kube.get(resource, name.name, namespace=name.namespace)).get("spec") or {}
    except NotFound as error:
        if name.kind:
            return {}
        raise BadInput(f"{name} ({resource.api_version}) does not exist") from error


def members_needed(name: GroupName, spec: Mapping[str, Any]) -> int:
    """How many members of the group must run together; 0 where each is placed alone. Raises BadInput.

    Workloads of more than MAX_MEMBERS are no groups, as they would never be placed.
    """
    if name.kind:
        return _needed_by_workload(name, spec)
    field, minimum = "minMember", spec.get("minMember")
    if name.api == KUBERNETES:
        policy = spec.get("schedulingPolicy")
        policy = policy if isinstance(policy, Mapping) else {}
        gang = policy.get("gang")
        if gang is None and isinstance(policy.get("basic"), Mapping):
            return 0
        field, minimum = "schedulingPolicy.gang.minCount", gang.get("minCount") if isinstance(gang, Mapping) else None
    if not isinstance(minimum, int) or isinstance(minimum, bool) or not 1 <= minimum <= MAX_MEMBERS:
        raise BadInput(f"{name}: {field} must be an integer from 1 to {MAX_MEMBERS}, got {minimum!r}")
    return minimum


def _needed_by_workload(name: GroupName, spec: Mapping[str, Any]) -> int:
    if name.said:
        number = int(name.said) if name.said.isascii() and name.said.isdigit() and len(name.said) < _DIGITS else -1
        if not 0 <= number <= MAX_MEMBERS:
            raise BadInput(
                f"{name}: annotation {MIN_MEMBERS} must be an integer from 0 to {MAX_MEMBERS}, got {quote(name.said)}"
            )
        return number
    try:
        needed = _COUNTS[name.kind](spec) if spec else 0
    except ValueError as problem:
        raise BadInput(f"{name}: {problem}") from problem
    return needed if needed <= MAX_MEMBERS else 0


def size_order(pod: ParsedPod) -> tuple[int, int, int]:
    """A sort key that puts large pods first."""
    containers = pod.request.containers if pod.request else ()
    gpus = sum(container.count for container in containers)
    percent = sum(container.count * (container.memory_percent or 0) for container in containers)
    memory = sum(container.count * (container.memory_mib or 0) for container in containers)
    return -gpus, -percent, -memory


def group_of_members(minimum: int, timeout_s: float, pods: Iterable[ParsedPod]) -> PodGroup:
    members = Members.of(pods)
    waiting = sorted(members.waiting, key=lambda pod: (size_order(pod), pod.uid))
    return PodGroup(
        members.needed(minimum),
        timeout_s,
        frozenset(pod.uid for pod in members.bound),
        {pod.uid: pod for pod in waiting},
        members.absent,
    )


def too_few_members(name: GroupName, needed: int, existing: int, absent: Sequence[str] = ()) -> str:
    """The sentence about a group that waits for pods to be created, or for those that are `absent`."""
    shown = "".join(f"; {each}" for each in absent[:_SHOWN_ABSENT])
    more = len(absent) - _SHOWN_ABSENT
    return (
        f"{name} waits for its members: {existing} of {needed} exist{shown}{f'; and {more} more' if more > 0 else ''}"
    )


def too_few_places(name: GroupName, needed: int, bound: int, free: int) -> str:
    """The sentence about a group of which `bound` members have a node, and `free` could get one."""
    if bound:
        return (
            f"{name} is placed in part: {bound} of {needed} members have a node; "
            f"{needed - bound} more must be placed at once, but only {free} can be placed now"
        )
    return (
        f"{name} is placed completely or not at all: "
        f"{needed} members must be placed at once, but only {free} can be placed now"
    )
