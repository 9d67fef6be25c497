"""ReplicaSets: as many pods as the spec says, and the truth about them in the status."""

from collections.abc import Iterable
from dataclasses import dataclass

from lamina.lab.controllers import replica_plan
from lamina.lab.controllers.claims import adopted, claim, released
from lamina.lab.controllers.hands import Hands
from lamina.lab.controllers.kinds import REPLICA_SETS
from lamina.lab.controllers.pod_template import pod_from
from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object
from lamina.ports.kube import PODS, Resource

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0


@dataclass(slots=True)
class Refusal:
    """The last attempt to make a pod was refused. It is repeated at `due`, in monotonic seconds, or for a new spec."""

    message: str
    times: int
    due: float
    generation: int


class ReplicaSets:
    """The controller of ReplicaSets."""

    kind = REPLICA_SETS

    def __init__(self, hands: Hands) -> None:
        self._hands = hands
        self._refusals: dict[str, Refusal] = {}

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        if resource != PODS:
            return []
        owner = objects.controller(obj)
        if owner is not None:
            return [f"{objects.namespace(obj)}/{owner['name']}"] if owner.get("kind") == REPLICA_SETS.kind else []
        everyone = self._hands.cache.list(REPLICA_SETS, objects.namespace(obj))
        return [objects.key(each) for each in everyone if claim(each, [obj]).adopt]

    async def sync(self, key: str) -> float | None:
        replica_set = self._hands.cache.get(REPLICA_SETS, key)
        if replica_set is None:
            self._refusals.pop(key, None)
            return None
        waits: list[float] = []
        if not objects.is_deleting(replica_set):
            waits += await self._manage(key, replica_set, await self._pods_of(replica_set))
        replica_set = self._hands.cache.get(REPLICA_SETS, key) or replica_set
        pods = claim(replica_set, self._hands.cache.list(PODS, objects.namespace(replica_set))).owned
        refusal = self._refusals.get(key)
        now = self._hands.clock.wall()
        status = replica_plan.status_of(replica_set, pods, now, failure=refusal.message if refusal else "")
        await self._hands.publish(REPLICA_SETS, replica_set, status)
        min_ready_s = float(objects.spec(replica_set).get("minReadySeconds") or 0)
        if (soon := replica_plan.available_in(pods, min_ready_s, now)) is not None:
            waits.append(soon + 1.0)  # readiness is dated in whole seconds
        return min(waits, default=None)

    async def _pods_of(self, replica_set: Object) -> list[Object]:
        claims = claim(replica_set, self._hands.cache.list(PODS, objects.namespace(replica_set)))
        reference = objects.owner_reference(REPLICA_SETS.api_version, REPLICA_SETS.kind, replica_set)
        for pod in claims.adopt:
            body = {"metadata": {"ownerReferences": adopted(pod, reference)}}
            claims.owned.append(await self._hands.patch(PODS, pod, body))
        for pod in claims.release:
            await self._hands.patch(PODS, pod, {"metadata": {"ownerReferences": released(pod, replica_set)}})
        return claims.owned

    async def _manage(self, key: str, replica_set: Object, pods: list[Object]) -> list[float]:
        """Make or end pods; the answer holds the seconds after which that may be possible, where it is not now."""
        now = self._hands.clock.wall()
        difference = replica_plan.missing(replica_set, pods)
        await self._hands.end_pods(REPLICA_SETS, replica_set, replica_plan.forgotten_failures(pods))
        if difference < 0:
            await self._hands.end_pods(REPLICA_SETS, replica_set, replica_plan.to_delete(pods, -difference, now))
        if difference <= 0:
            self._refusals.pop(key, None)
            return []
        wait = max(self._held_up(key, replica_set), replica_plan.creation_delay(pods, now))
        if wait > 0:
            return [wait]
        return await self._make(key, replica_set, difference)

    def _held_up(self, key: str, replica_set: Object) -> float:
        refusal = self._refusals.get(key)
        if refusal is None or refusal.generation != replica_set["metadata"].get("generation", 0):
            return 0.0
        return max(0.0, refusal.due - self._hands.clock.monotonic())

    async def _make(self, key: str, replica_set: Object, count: int) -> list[float]:
        template = objects.spec(replica_set).get("template") or {}
        pod = pod_from(template, replica_set, REPLICA_SETS.api_version, REPLICA_SETS.kind, {})
        made = await self._hands.make_pods(REPLICA_SETS, replica_set, [pod] * count)
        if not made.failure:
            self._refusals.pop(key, None)
            return []
        before = self._refusals.get(key)
        generation = replica_set["metadata"].get("generation", 0)
        times = before.times + 1 if before and not made.count and before.generation == generation else 0
        pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0**times)
        due = self._hands.clock.monotonic() + pause
        self._refusals[key] = Refusal(made.failure, times, due, generation)
        return [pause]
