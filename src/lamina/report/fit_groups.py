"""Pod groups that pods of a manifest belong to: how many members they need next to those that exist."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lamina.configuration import Config
from lamina.dialects.groups import GroupName, group_of
from lamina.ledger.group_members import Members
from lamina.ledger.pod_groups import size_order, too_few_members, too_few_places
from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import Kube
from lamina.report.cluster_view import ClusterView
from lamina.report.pod_templates import PodTemplate
from lamina.report.waiting_groups import needed_members


class Member(NamedTuple):
    """A pod of a group, and what it is from."""

    pod: ParsedPod
    template: PodTemplate


async def read_needed(
    kube: Kube, templates: Iterable[PodTemplate], written: Mapping[GroupName, int], config: Config
) -> dict[GroupName, int | str]:
    """How many members the groups of the pods need, or why that is not known. `written` is what the manifest says.

    Raises BadInput for a name that no group can have; Outside.
    """
    needed: dict[GroupName, int | str] = dict(written)
    for name in {group_of(template.pod, config) for template in templates}:
        if name is not None and name not in needed:
            name.check()
            needed[name] = await needed_members(kube, name)
    return needed


class GroupTrial(NamedTuple):
    """`needed` members with GPUs must have a place together; `bound` have one. `waiting` exist without one."""

    name: GroupName
    needed: int
    bound: int
    waiting: tuple[Member, ...]
    absent: tuple[str, ...] = ()
    """Why further pods do not count, one sentence each."""

    @classmethod
    def of(cls, cluster: ClusterView, name: GroupName, needed: int) -> "GroupTrial":
        """With the pods of the group in the cluster."""
        members = Members.of(pod for pod in map(cluster.parse, cluster.pods) if pod.group == name)
        waiting = tuple(Member(pod, PodTemplate(f"Pod {pod.name}", pod.obj, 1)) for pod in members.waiting)
        return cls(name, members.needed(needed), len(members.bound), waiting, members.absent)

    @property
    def lacking(self) -> int:
        """How many more members must have a place."""
        return self.needed - self.bound

    def in_order(self, members: Iterable[Member]) -> list[Member]:
        """These members and those that wait, in the order in which they are placed."""
        return sorted([*self.waiting, *members], key=lambda member: size_order(member.pod))

    def too_few(self, members: int) -> str:
        """Why the group still waits for pods with this many more, or nothing."""
        existing = self.bound + len(self.waiting) + members
        return too_few_members(self.name, self.needed, existing, self.absent) if existing < self.needed else ""

    def too_few_places(self, free: int) -> str:
        """Why this many places are not enough."""
        return too_few_places(self.name, self.needed, self.bound, free)
