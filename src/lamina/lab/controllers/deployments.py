"""Deployments: a ReplicaSet per pod template, and replicas moved from the old ones to the new one."""

from collections.abc import Iterable

from lamina.errors import Outside
from lamina.lab.controllers import deployment_plan, revisions
from lamina.lab.controllers.actions import Create
from lamina.lab.controllers.claims import adopted, claim, released
from lamina.lab.controllers.deployment_status import deadline_in, status_of
from lamina.lab.controllers.hands import Hands
from lamina.lab.controllers.kinds import DEPLOYMENTS, REPLICA_SETS
from lamina.lab.controllers.pod_template import same_template
from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object
from lamina.ports.kube import PODS, AlreadyExists, Resource

_STEPS = 20
"""Steps that follow from each other in one sync; a plan ends long before, and the next sync would go on."""


class Deployments:
    """The controller of Deployments."""

    kind = DEPLOYMENTS

    def __init__(self, hands: Hands) -> None:
        self._hands = hands

    def concerned(self, resource: Resource, obj: Object) -> Iterable[str]:
        if resource == REPLICA_SETS:
            return self._of_replica_set(obj)
        if resource == PODS:
            return self._of_pod(obj)
        return ()

    def _of_replica_set(self, obj: Object) -> list[str]:
        owner = objects.controller(obj)
        if owner is not None:
            ours = owner.get("kind") == DEPLOYMENTS.kind
            return [f"{objects.namespace(obj)}/{owner['name']}"] if ours else []
        everyone = self._hands.cache.list(DEPLOYMENTS, objects.namespace(obj))
        return [objects.key(each) for each in everyone if claim(each, [obj]).adopt]

    def _of_pod(self, pod: Object) -> list[str]:
        """Only Recreate waits for pods themselves; everything else is seen through their ReplicaSet."""
        owner = objects.controller(pod)
        if owner is None or owner.get("kind") != REPLICA_SETS.kind:
            return []
        replica_set = self._hands.cache.get(REPLICA_SETS, f"{objects.namespace(pod)}/{owner['name']}")
        return self._of_replica_set(replica_set) if replica_set else []

    async def sync(self, key: str) -> float | None:
        created = refused = ""
        for _ in range(_STEPS):
            deployment = self._hands.cache.get(DEPLOYMENTS, key)
            if deployment is None:
                return None
            sets = await self._sets_of(deployment)
            old_pods = self._old_pods_remain(deployment, sets)
            actions = deployment_plan.plan(deployment, sets, old_pods_remain=old_pods)
            if not actions:
                break
            try:
                await self._hands.perform(actions)
            except AlreadyExists:
                await self._set_apart(deployment, actions[0])
            except Outside as error:
                if not isinstance(actions[0], Create):
                    raise
                refused = str(error)
                break
            if isinstance(actions[0], Create):
                created = objects.name(actions[0].obj)
        return await self._publish(key, created, refused)

    async def _sets_of(self, deployment: Object) -> list[Object]:
        claims = claim(deployment, self._hands.cache.list(REPLICA_SETS, objects.namespace(deployment)))
        reference = objects.owner_reference(DEPLOYMENTS.api_version, DEPLOYMENTS.kind, deployment)
        for each in claims.adopt:
            body = {"metadata": {"ownerReferences": adopted(each, reference)}}
            claims.owned.append(await self._hands.patch(REPLICA_SETS, each, body))
        for each in claims.release:
            body = {"metadata": {"ownerReferences": released(each, deployment)}}
            await self._hands.patch(REPLICA_SETS, each, body)
        return claims.owned

    def _old_pods_remain(self, deployment: Object, sets: list[Object]) -> bool:
        old = {objects.uid(each) for each in revisions.family(deployment, sets).old}
        return any(
            (objects.controller(pod) or {}).get("uid") in old and not objects.is_finished(pod)
            for pod in self._hands.cache.list(PODS, objects.namespace(deployment))
        )

    async def _set_apart(self, deployment: Object, action: object) -> None:
        """The new set's name is taken: by ours, not seen yet, or by another, and then the hash needs another salt."""
        if not isinstance(action, Create):
            return
        taken = self._hands.cache.get(REPLICA_SETS, objects.key(action.obj))
        if taken is not None and not same_template(taken["spec"]["template"], deployment["spec"]["template"]):
            count = int(objects.status(deployment).get("collisionCount") or 0)
            await self._hands.publish(DEPLOYMENTS, deployment, {"collisionCount": count + 1})

    async def _publish(self, key: str, created: str, refused: str) -> float | None:
        deployment = self._hands.cache.get(DEPLOYMENTS, key)
        if deployment is None:
            return None
        now = self._hands.clock.wall()
        group = revisions.family(deployment, await self._sets_of(deployment))
        status = status_of(deployment, group, now, created=created, refused=refused)
        await self._hands.publish(DEPLOYMENTS, deployment, status)
        if refused:
            raise Outside(refused)  # the loop tries again, each time a little later
        return deadline_in(deployment, status, now)
