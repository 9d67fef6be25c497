"""Another size in the template of a workload, without replacing its pods where that is possible.

A Deployment replaces its pods when it has no ReplicaSet with its template. So the Deployment is paused, the template
of its ReplicaSet is changed, then that of the Deployment, and the Deployment goes on once its controller reports that
the ReplicaSet has its template. After a crash the Deployment is still paused, and the same command goes on from there.
"""

import copy
from collections.abc import Callable
from typing import Any

from lamina.core.config import Config
from lamina.dialects import WantedSize, find_template, resize_template
from lamina.errors import BadInput, NotYet, Outside
from lamina.operations.workloads import find_workload
from lamina.ports.clock import Clock
from lamina.ports.kube import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Conflict,
    Kube,
    Object,
    Resource,
)

PAUSED = "lamina.dev/resize-paused"
"""The annotation of a Deployment that was paused for a resize."""
_HASH = "pod-template-hash"
_EVERY_S, _MAX_S = 0.2, 30.0
_TRIES = 5

Change = Callable[[Any], Any]
"""A template -> the template with the new size."""


class TemplateResizer:
    """Changes templates through `kube`, with the rights of its user."""

    def __init__(self, kube: Kube, clock: Clock, config: Config) -> None:
        self._kube = kube
        self._clock = clock
        self._config = config

    async def resize(self, namespace: str, which: str, container: str, size: WantedSize, *, rollout: bool) -> str:
        """Change the template of the workload kind/name. Returns a sentence on what happens to pods.

        Without `rollout`, a template stays as it is if its pods would be replaced. Raises BadInput and Outside.
        """
        resource, workload = await find_workload(self._kube, namespace, which)
        title = f"{resource.kind} {workload['metadata']['name']}"
        if resource == JOBS:
            return f"The template of {title} cannot change, so pods that it creates later have the old size."
        change = self._change(workload, container, size)
        _, template = find_template(workload)
        if change(template) == template and not _is_paused_here(workload):
            return f"The template of {title} has this size already."
        if resource == DEPLOYMENTS and not rollout:
            await self._change_in_place(namespace, workload["metadata"]["name"], change)
            return f"The template of {title} has the new size. No pod was replaced."
        if not rollout and resource in (STATEFUL_SETS, DAEMON_SETS) and not _waits_for_deletion(workload):
            return (
                f"The template of {title} was not changed, because its update strategy would replace the pods; those "
                "created later have the old size. Use --rollout to replace them."
            )
        await self._replace(resource, namespace, workload["metadata"]["name"], lambda obj: _set_template(obj, change))
        replaced = rollout and resource not in (REPLICA_SETS, CRON_JOBS) and not _waits_for_deletion(workload)
        return f"The template of {title} has the new size. {'Its pods are' if replaced else 'No pod was'} replaced."

    def _change(self, workload: Object, container: str, size: WantedSize) -> Change:
        namespace = workload["metadata"]["namespace"]

        def change(template: Any) -> Any:
            metadata = template.get("metadata") or {}
            name = container or template["spec"]["containers"][0]["name"]
            pod = {**template, "metadata": {**metadata, "namespace": namespace}}
            changed = resize_template(pod, name, size, self._config)
            metadata = {key: value for key, value in changed["metadata"].items() if key != "namespace"}
            return {**changed, "metadata": metadata} if metadata or "metadata" in template else changed

        return change

    async def _change_in_place(self, namespace: str, name: str, change: Change) -> None:
        deployment = await self._kube.get(DEPLOYMENTS, name, namespace=namespace)
        replica_set = await self._replica_set(deployment, change)
        if not deployment["spec"].get("paused"):
            await self._replace(DEPLOYMENTS, namespace, name, _pause)
        template = change(deployment["spec"]["template"])
        await self._replace(
            REPLICA_SETS, namespace, replica_set["metadata"]["name"], lambda obj: _set_kept_hash(obj, template)
        )
        await self._replace(DEPLOYMENTS, namespace, name, lambda obj: _set_template(obj, change))
        await self._wait_for_controller(namespace, name)
        await self._replace(DEPLOYMENTS, namespace, name, _go_on)

    async def _replica_set(self, deployment: Object, change: Change) -> Object:
        """The ReplicaSet of all pods. Raises BadInput during a rollout."""
        name, uid = deployment["metadata"]["name"], deployment["metadata"]["uid"]
        listed = (await self._kube.list(REPLICA_SETS, namespace=deployment["metadata"]["namespace"])).items
        own = [
            each
            for each in listed
            if any(owner.get("uid") == uid for owner in each["metadata"].get("ownerReferences") or ())
        ]
        template = deployment["spec"]["template"]
        known = [template, change(template)]
        current = next((each for each in own if _without_hash(each["spec"]["template"]) in known), None)
        others = [each for each in own if each is not current]
        if current is None or any(_has_pods(each) for each in others):
            raise BadInput(f"Deployment {name} has a rollout that has not ended; wait for it")
        return current

    async def _wait_for_controller(self, namespace: str, name: str) -> None:
        """Until the Deployment's controller counts all replicas as those of the new template."""
        deadline = self._clock.monotonic() + _MAX_S
        while True:
            deployment = await self._kube.get(DEPLOYMENTS, name, namespace=namespace)
            status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
            observed = (status.get("observedGeneration") or 0) >= (deployment["metadata"].get("generation") or 0)
            if observed and (status.get("updatedReplicas") or 0) >= wanted:
                return
            if self._clock.monotonic() > deadline:
                raise Outside(
                    f"Deployment {name} is still paused, because its controller has not reported the new template "
                    "within 30 s; run the command again"
                )
            await self._clock.sleep(_EVERY_S)

    async def _replace(self, resource: Resource, namespace: str, name: str, change: Callable[[Object], None]) -> None:
        for _ in range(_TRIES):
            obj = copy.deepcopy(await self._kube.get(resource, name, namespace=namespace))
            before = copy.deepcopy(obj)
            change(obj)
            if obj == before:
                return
            try:
                await self._kube.replace(resource, obj)
            except Conflict:
                continue
            return
        raise NotYet(f"{resource.kind} {name} is being changed by others; run the command again")


def _pause(deployment: Object) -> None:
    deployment["spec"]["paused"] = True
    deployment["metadata"].setdefault("annotations", {})[PAUSED] = "true"


def _go_on(deployment: Object) -> None:
    """Undo `_pause`. A Deployment that someone else paused stays paused."""
    if _is_paused_here(deployment):
        deployment["spec"].pop("paused", None)
        del deployment["metadata"]["annotations"][PAUSED]


def _is_paused_here(workload: Object) -> bool:
    return PAUSED in (workload["metadata"].get("annotations") or {})


def _set_template(workload: Object, change: Change) -> None:
    pointer, template = find_template(workload)
    holder = workload
    for part in pointer.split("/")[1:-1]:
        holder = holder[part]
    holder["template"] = change(template)


def _set_kept_hash(replica_set: Object, template: Any) -> None:
    before = replica_set["spec"]["template"]
    changed = copy.deepcopy(template)
    if label := (before["metadata"].get("labels") or {}).get(_HASH):
        changed["metadata"].setdefault("labels", {})[_HASH] = label
    replica_set["spec"]["template"] = changed


def _without_hash(template: Any) -> Any:
    labels = {key: value for key, value in (template["metadata"].get("labels") or {}).items() if key != _HASH}
    return {**template, "metadata": {**template["metadata"], "labels": labels}}


def _has_pods(replica_set: Object) -> bool:
    return bool(replica_set["spec"].get("replicas") or (replica_set.get("status") or {}).get("replicas"))


def _waits_for_deletion(workload: Object) -> bool:
    return (workload["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"
