"""The Deployment controller: a ReplicaSet per pod template, and replicas moved from the old sets to the new one."""

from collections.abc import Iterable

from lamina.errors import Outside
from lamina.ports.kube import PODS, AlreadyExists, Object, Resource
from lamina_lab.controllers.deployment import plan, revisions
from lamina_lab.controllers.deployment.status import deadline_in, status_of
from lamina_lab.controllers.framework.actions import Create
from lamina_lab.controllers.framework.executor import Executor
from lamina_lab.controllers.framework.kinds import DEPLOYMENTS, REPLICA_SETS
from lamina_lab.controllers.framework.ownership import sort_children
from lamina_lab.controllers.framework.pod_template import same_template
from lamina_lab.kubernetes import objects

_STEPS = 20
"""Upper limit of consecutive steps in one sync. Plans need far fewer, and the next sync continues."""


class DeploymentController:
    """The controller of Deployments."""

    kind = DEPLOYMENTS

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

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
        all_nodes = self._executor.cache.list(DEPLOYMENTS, objects.namespace(obj))
        return [objects.key(all_node) for all_node in all_nodes if sort_children(all_node, [obj]).adopt]

    def _of_pod(self, pod: Object) -> list[str]:
        """Only Recreate waits for pods. Everything else is visible through their ReplicaSets."""
        owner = objects.controller(pod)
        if owner is None or owner.get("kind") != REPLICA_SETS.kind:
            return []
        replica_set = self._executor.cache.get(REPLICA_SETS, f"{objects.namespace(pod)}/{owner['name']}")
        return self._of_replica_set(replica_set) if replica_set else []

    async def sync(self, key: str) -> float | None:
        created = refused = ""
        for _ in range(_STEPS):
            deployment = self._executor.cache.get(DEPLOYMENTS, key)
            if deployment is None:
                return None
            sets = await self._sets_of(deployment)
            old_pods = self._old_pods_remain(deployment, sets)
            actions = plan.plan(deployment, sets, old_pods_remain=old_pods)
            if not actions:
                break
            try:
                await self._executor.perform(actions)
            except AlreadyExists:
                await self._resolve_collision(deployment, actions[0])
            except Outside as error:
                if not isinstance(actions[0], Create):
                    raise
                refused = str(error)
                break
            if isinstance(actions[0], Create):
                created = objects.name(actions[0].obj)
        return await self._publish(key, created, refused)

    async def _sets_of(self, deployment: Object) -> list[Object]:
        sets = self._executor.cache.list(REPLICA_SETS, objects.namespace(deployment))
        return await self._executor.own(DEPLOYMENTS, deployment, REPLICA_SETS, sets)

    def _old_pods_remain(self, deployment: Object, sets: list[Object]) -> bool:
        old = {objects.uid(replica_set) for replica_set in revisions.family(deployment, sets).old}
        return any(
            (objects.controller(pod) or {}).get("uid") in old and not objects.is_finished(pod)
            for pod in self._executor.cache.list(PODS, objects.namespace(deployment))
        )

    async def _resolve_collision(self, deployment: Object, action: object) -> None:
        """Handle a name that is taken: by our own set, not observed yet, or by another one, which needs a new hash."""
        if not isinstance(action, Create):
            return
        taken = self._executor.cache.get(REPLICA_SETS, objects.key(action.obj))
        if taken is not None and not same_template(taken["spec"]["template"], deployment["spec"]["template"]):
            count = int(objects.status(deployment).get("collisionCount") or 0)
            await self._executor.publish(DEPLOYMENTS, deployment, {"collisionCount": count + 1})

    async def _publish(self, key: str, created: str, refused: str) -> float | None:
        deployment = self._executor.cache.get(DEPLOYMENTS, key)
        if deployment is None:
            return None
        now = self._executor.clock.wall()
        group = revisions.family(deployment, await self._sets_of(deployment))
        status = status_of(deployment, group, now, created=created, refused=refused)
        await self._executor.publish(DEPLOYMENTS, deployment, status)
        if refused:
            raise Outside(refused)  # the loop retries with back-off
        return deadline_in(deployment, status, now)
