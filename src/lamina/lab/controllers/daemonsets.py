"""DaemonSets: one pod on each node that takes it."""

from collections.abc import Iterable

from lamina.lab.controllers import daemon_plan
from lamina.lab.controllers.hands import Hands
from lamina.lab.controllers.kinds import DAEMON_SETS
from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object
from lamina.ports.kube import NODES, PODS, Resource

_REFUSED_PAUSE_S = 5.0


class DaemonSets:
    """The controller of DaemonSets."""

    kind = DAEMON_SETS

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._refused_until: dict[str, float] = {}

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        if resource == NODES:
            return [objects.key(each) for each in self._hands.cache.list(DAEMON_SETS)]
        owner = objects.controller(obj) if resource == PODS else None
        ours = owner is not None and owner.get("kind") == DAEMON_SETS.kind
        return [f"{objects.namespace(obj)}/{owner['name']}"] if owner and ours else []

    async def sync(self, key: str) -> float | None:
        daemon_set = self._hands.cache.get(DAEMON_SETS, key)
        if daemon_set is None:
            self._refused_until.pop(key, None)
            return None
        plan = self._plan(daemon_set)
        await self._hands.end_pods(DAEMON_SETS, daemon_set, plan.delete)
        left = self._refused_until.get(key, 0.0) - self._hands.clock.monotonic()
        if plan.create and left <= 0:
            made = await self._hands.make_pods(DAEMON_SETS, daemon_set, plan.create)
            left = _REFUSED_PAUSE_S if made.failure else 0.0
            self._refused_until[key] = self._hands.clock.monotonic() + left
        daemon_set = self._hands.cache.get(DAEMON_SETS, key) or daemon_set
        await self._hands.publish(DAEMON_SETS, daemon_set, self._plan(daemon_set).status)
        return left if plan.create and left > 0 else None

    def _plan(self, daemon_set: Object) -> daemon_plan.DaemonPlan:
        pods = self._hands.cache.list(PODS, objects.namespace(daemon_set))
        ours = [pod for pod in pods if (objects.controller(pod) or {}).get("uid") == objects.uid(daemon_set)]
        return daemon_plan.plan(daemon_set, ours, self._hands.cache.list(NODES), self._hands.clock.wall())
