"""Pod groups that wait: what keeps a member waiting that would fit alone, by the plans that the controller makes."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from lamina.configuration import DEFAULT
from lamina.dialects.groups import GroupName, group_of
from lamina.errors import BadInput
from lamina.group_plans import GroupPlanner, Kind, NoPlan, PlanBasis, kind_of
from lamina.ledger.pod_groups import PodGroup, group_of_members, members_needed, read_spec
from lamina.ledger.pod_stages import Stage, pod_state
from lamina.ledger.pods import ParsedPod
from lamina.ports.kube import Kube, Object, Refused

Needed = Mapping[GroupName, int | str]
"""How many members groups need together, or why that is not known. Groups that may not be read are missing."""
_CONCURRENT = 16
"""How many groups are read at the same time."""


async def needed_members(kube: Kube, name: GroupName) -> int | str:
    """How many members the group needs, or why that is not known. Raises Outside."""
    try:
        name.check()
        return members_needed(name, await read_spec(kube, name))
    except BadInput as problem:
        return str(problem)


async def read_waiting(kube: Kube, pods: Iterable[Object]) -> Needed:
    """How many members each group needs that has a pending pod among these. Raises Outside.

    The default configuration has all kinds of groups, so it finds those of any other one too.
    """
    limit, found = asyncio.Semaphore(_CONCURRENT), dict[GroupName, int | str]()

    async def read(name: GroupName) -> None:
        async with limit:
            with contextlib.suppress(Refused):
                found[name] = await needed_members(kube, name)

    waiting = (group_of(pod, DEFAULT) for pod in pods if pod_state(pod).stage is Stage.PENDING)
    await asyncio.gather(*(read(name) for name in {name for name in waiting if name is not None}))
    return found


class WaitingGroups:
    """Those of one view, which has these pods."""

    def __init__(self, needed: Needed, pods: Callable[[], Iterable[ParsedPod]], basis: PlanBasis) -> None:
        self._needed = needed
        self._pods = pods
        self._planner = GroupPlanner(basis)
        self._refusals: dict[tuple[GroupName, Kind, tuple[str, ...]], str] = {}
        """Members of one kind have one answer."""

    def refusal(self, pod: ParsedPod, fitting: Sequence[str]) -> str:
        """Why the group of a pod that fits these nodes waits, as a sentence; nothing where it does not, or where that
        is not known."""
        name = pod.group
        if name is None or pod.request is None or not self.knows(pod):
            return ""
        question = name, kind_of(pod), tuple(fitting)
        if question not in self._refusals:
            self._refusals[question] = self._refusal(name, pod, fitting)
        return self._refusals[question]

    def knows(self, pod: ParsedPod) -> bool:
        """Whether the group of the pod was read."""
        return pod.group in self._needed

    def _refusal(self, name: GroupName, pod: ParsedPod, fitting: Sequence[str]) -> str:
        needed = self._needed[name]
        if isinstance(needed, str):
            return needed
        group = self._groups[name]
        if len(self._planner.bound_members(group)) >= group.needed:
            return ""
        plan = self._planner.plan(name, group, pod, fitting, {})
        return plan.reason if isinstance(plan, NoPlan) else ""

    @cached_property
    def _groups(self) -> dict[GroupName, PodGroup]:
        members: dict[GroupName, list[ParsedPod]] = {}
        for pod in self._pods():
            if pod.group is not None:
                members.setdefault(pod.group, []).append(pod)
        return {
            name: group_of_members(needed, 0.0, members.get(name, ()))
            for name, needed in self._needed.items()
            if isinstance(needed, int)
        }
