"""Which pods to evict on which nodes, so that the members that a pod group lacks get their places together.

The victims have a lower priority than any waiting member, and no PodDisruptionBudget protects them. Members go to nodes
that passed kube-scheduler's own filters. Of CPU and memory, kube-scheduler has checked one member per node; several are
planned on a node only if their requests fit what is free there, and if they have no constraints about other pods.
"""

import asyncio
from collections.abc import Mapping, Sequence

from lamina.controller.context import Context
from lamina.controller.eviction.candidates import (
    EvictionPlan,
    constrained_by_pods,
    leaving,
    list_pods,
    may_evict,
    must_wait,
    spared,
    victim_of,
)
from lamina.controller.gangs.coordinator import GangCoordinator
from lamina.core.host_size import HostSize
from lamina.dialects.groups import GroupName
from lamina.group_plans import Lacking, kind_of
from lamina.ledger.disruption import violations
from lamina.ledger.pods import ParsedPod
from lamina.placement.eviction.group_victims import GroupMember, NodeEvictions, NodeRoom, cheapest_for_group
from lamina.ports.kube import DISRUPTION_BUDGETS, Object

MAX_MEMBERS, MAX_NODES = 100, 200
"""How many members pods are evicted for at once, and on how many nodes."""
_MAX_SETS = 20
"""How many sets of victims are compared for one more member on a node."""


class GroupVictims:
    """Reads the ledger, groups, pods and budgets, and changes nothing."""

    def __init__(self, context: Context, gangs: GangCoordinator) -> None:
        self._context = context
        self._kube = context.kube
        self._cluster_state = context.cluster_state
        self._rules = context.rules
        self._gangs = gangs

    async def lacking(self, name: GroupName, pod: ParsedPod) -> Lacking | None:
        """What the group of this pod lacks; None where no pod may be evicted for it now. Raises Outside."""
        if must_wait(self._context, pod):
            return None
        lacking = await self._gangs.lacking(name, pod)
        if lacking is None or lacking.needed > MAX_MEMBERS or any(each.never_preempts for each in lacking.members):
            return None
        return lacking

    async def plan(self, lacking: Lacking) -> EvictionPlan | None:
        """What to evict. None where no eviction is needed, helps or is allowed. Raises Outside."""
        budgets = (await self._kube.list(DISRUPTION_BUDGETS)).items
        pods = await list_pods(self._kube, await self._nodes(lacking))
        objects = {uid: obj for by_uid in pods.values() for uid, obj in by_uid.items()}
        rooms = self._rooms(lacking, pods)
        found = await self._search(lacking, rooms, budgets, objects)
        if found is None or not any(each.victims for each in found.values()) or not _still_fits(found, rooms):
            return None
        members = {member.uid: member for member in lacking.members}
        places = [(members[uid], node) for node, each in found.items() for uid in each.members]
        victims = {node: [objects[victim.uid] for victim in each.victims] for node, each in found.items()}
        return EvictionPlan(places, {node: there for node, there in victims.items() if there})

    async def _search(
        self,
        lacking: Lacking,
        rooms: Mapping[str, NodeRoom],
        budgets: Sequence[Object],
        objects: Mapping[str, Object],
    ) -> dict[str, NodeEvictions] | None:
        """Everything else gets its turn after each look at a node."""
        members = [
            GroupMember(member.uid, kind_of(member), lacking.allowed[member.template]) for member in lacking.members
        ]

        def violated(uids: frozenset[str]) -> int:
            return violations([objects[uid] for uid in sorted(uids)], budgets) if budgets else 0

        search = cheapest_for_group(members, lacking.needed, rooms, violated, most_sets=_MAX_SETS)
        while True:
            try:
                next(search)
            except StopIteration as end:
                found: dict[str, NodeEvictions] | None = end.value
                return found
            await asyncio.sleep(0)

    def _rooms(self, lacking: Lacking, pods: Mapping[str, Mapping[str, Object]]) -> dict[str, NodeRoom]:
        priority = min(member.priority for member in lacking.members)
        return {node: _room(self._context, node, lacking, there, priority) for node, there in pods.items()}

    async def _nodes(self, lacking: Lacking) -> list[str]:
        """Nodes where one of the members would fit if they were empty. Everything else gets its turn meanwhile."""
        kinds = {kind_of(member): member for member in lacking.members}
        found: dict[str, None] = {}
        for member in kinds.values():
            for node in lacking.allowed[member.template]:
                if len(found) == MAX_NODES:
                    return list(found)
                request = member.request and self._rules.bounded(member, member.request)
                if node not in found and request and self._cluster_state.fits_empty(node, request):
                    found[node] = None
                await asyncio.sleep(0)
        return list(found)


def _still_fits(found: Mapping[str, NodeEvictions], rooms: Mapping[str, NodeRoom]) -> bool:
    """Other pods may have been placed during the search."""
    return all(
        rooms[node].fits(each.members, frozenset(victim.uid for victim in each.victims)) for node, each in found.items()
    )


def _room(context: Context, node: str, lacking: Lacking, pods: Mapping[str, Object], priority: int) -> NodeRoom:
    """`pods` are those of the node. Of these, pods with GPUs and a lower priority may go."""
    members = {member.uid: member for member in lacking.members}
    cluster_state = context.cluster_state
    gone = leaving(cluster_state.ledger, node, pods)
    staying = gone | spared(context, node, pods)
    candidates = [
        victim_of(pod)
        for uid, pod in pods.items()
        if uid not in staying and may_evict(cluster_state.ledger, node, pod, priority)
    ]

    def fits(uids: Sequence[str], evicted: frozenset[str]) -> bool:
        there = [members[uid] for uid in uids]
        requests = [member.request for member in there if member.request is not None]
        free = cluster_state.host.free(node, without=evicted | gone)
        return _go_together(there, free) and cluster_state.fits_without(node, requests, evicted | gone | members.keys())

    return NodeRoom(candidates, fits)


def _go_together(members: Sequence[ParsedPod], free: HostSize) -> bool:
    """Whether nothing but GPUs keeps the members from one node, of which one alone is known to be allowed there."""
    if len(members) == 1:
        return True
    cpu = sum(member.host_size.cpu for member in members)
    memory = sum(member.host_size.memory_mib for member in members)
    constrained = any(constrained_by_pods(member.obj.get("spec") or {}) for member in members)
    return not constrained and cpu <= free.cpu and memory <= free.memory_mib
