"""Pod groups of a thousand members: how long the event loop is kept from everything else while places are found."""

import asyncio
import statistics
import time

from bench.scheduler import cluster
from bench.scheduler.core import Core
from lamina.config_source.live import LiveConfiguration
from lamina.configuration import DEFAULT
from lamina.controller.capacity.request_mix import pod_kind
from lamina.controller.context import Context
from lamina.controller.gangs.coordinator import plan_basis
from lamina.controller.scheduling.nominated_pods import NominatedPods
from lamina.dialects.groups import SCHEDULER_PLUGINS, GroupName
from lamina.group_plans import GroupPlanner, PlanSearch
from lamina.ledger.pod_groups import PodGroup
from lamina.ledger.pods import ParsedPod, parse_pod
from lamina.ledger.quotas import ResourceQuotas
from lamina.ports.clock import FakeClock
from lamina.ports.kube.fake import FakeKube

MEMBERS = 1000
_ROUNDS = 5
_KINDS = ({"gpu": 1, "gpumem": 30_000}, {"gpu": 1, "gpumem": 80_000}, {"gpu": 1, "gpumem": 2000, "gpucores": 5})
_NAME = GroupName(SCHEDULER_PLUGINS, "default", "group")
_CONTROL = 10
"""Members of the null control."""


class Gangs:
    """A planner over a cluster whose packing policy has been learned."""

    def __init__(self, nodes: int, members: int) -> None:
        self._core, self._count = Core(nodes), members
        configuration = LiveConfiguration(DEFAULT, "")
        # The search for a plan ends by a clock; this one stands still, so that a busy machine ends none.
        self._context = Context(FakeKube(), FakeClock(), configuration, self._core.cluster_state, ResourceQuotas())
        self._basis = plan_basis(self._context, self._core.scheduler, NominatedPods(self._context, set()))
        self._planner = GroupPlanner(self._basis)
        for number in range(500):
            self._core.cluster_state.request_mix.count(pod_kind(parse_pod(cluster.new_pod(f"new-{number}"), DEFAULT)))
        asyncio.run(self._core.scheduler.packing.learn())

    def plan_ms(self) -> float:
        """The median time of a plan, in milliseconds of the core's own time."""
        taken = []
        for limits in _KINDS:
            members = _members(limits, self._count)
            group = PodGroup(self._count, 60.0, frozenset(), {pod.uid: pod for pod in members})
            asyncio.run(self._core.scheduler.warm_up(members[0]))
            fitting = self._core.scheduler.filter(members[0], self._core.names).fitting
            for _ in range(_ROUNDS):
                began = time.thread_time()
                plan = self._planner.plan(_NAME, group, members[0], fitting, {members[0].template: fitting})
                taken.append(time.thread_time() - began)
                assert len(plan) == self._count, plan
        return statistics.median(taken) * 1e3

    def searched_anew_ms(self) -> float:
        """The same where each member searches all nodes: the null control."""
        search = PlanSearch(self._basis)
        members = _members(_KINDS[0], min(_CONTROL, self._count))
        began = time.thread_time()
        for member in members:
            search.place_on(member, self._core.names)
        return (time.thread_time() - began) * self._count / len(members) * 1e3


def _members(limits: dict[str, int], count: int) -> list[ParsedPod]:
    return [parse_pod(cluster.pod(f"member-{number:04d}", limits), DEFAULT) for number in range(count)]
