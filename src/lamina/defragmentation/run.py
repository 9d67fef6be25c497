"""Carrying out a plan of defragmentation, one GPU and one batch of pods at a time.

The GPU that is to become idle is cordoned while its pods move, so that nothing comes back to it. Pods are evicted
through the eviction API, so PodDisruptionBudgets hold, and none of a batch is evicted where its budgets do not allow
all of it. When a batch does not move as planned, the rest of the plan is not carried out. A GPU that was cordoned
before stays cordoned, any other is uncordoned whatever happens.
"""

import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

from lamina.configuration import Config
from lamina.core.grants import Grant
from lamina.core.ledger import taken_by
from lamina.core.objects import read_inventory
from lamina.defragmentation.cordon import set_cordoned
from lamina.dialects.groups import group_of
from lamina.errors import BadInput, Outside
from lamina.ledger.disruption import violations
from lamina.ledger.grant_objects import grant_record
from lamina.placement.eviction.defrag import DefragStep
from lamina.placement.eviction.relocation import Batch, BatchState, MovedPod, batches, changed, outcome
from lamina.ports.clock import Clock
from lamina.ports.kube import DISRUPTION_BUDGETS, GRANTS, INVENTORIES, PODS, Kube, NotFound, Object
from lamina.report.cluster_reader import read, readable
from lamina.report.cluster_view import ClusterView

_EVERY_S = 2.0


class Mover:
    """Evicts pods for a run, and may record each change before it happens. This one keeps no record.

    Each method may raise Outside, which aborts the plan before the change.
    """

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def cordoning(self, step: DefragStep) -> None:
        """The GPU of the step is cordoned next."""

    async def evicting(self, count: int) -> None:
        """This many pods are evicted next."""

    async def evict(self, pod: Object, step: DefragStep) -> None:
        meta = pod["metadata"]
        await self._kube.evict(meta["name"], namespace=meta["namespace"], uid=meta["uid"])

    async def uncordoned(self) -> None:
        """No GPU is cordoned for the run any more."""


class DefragRun:
    """One run over a cluster. `patience_s` is how long each cordon and each batch may take."""

    def __init__(self, kube: Kube, clock: Clock, *, patience_s: float, mover: Mover | None = None) -> None:
        self._kube = kube
        self._clock = clock
        self._mover = mover or Mover(kube)
        self._patience_s = patience_s

    async def run(self, cluster: ClusterView, steps: Sequence[DefragStep]) -> AsyncIterator[str]:
        """Move pods of the cluster, and yield a line for each thing done. Raises Outside where the plan is aborted."""
        index = {gpu.uuid: gpu.index for inventory in cluster.inventories.values() for gpu in inventory.gpus}
        holders = list(_replaceable(cluster.pods, cluster.grants, cluster.config))
        for step in steps:
            async with self._cordoned(step):
                for batch in batches(step, holders):
                    await self._move(step, batch)
                    yield f"Moved {', '.join(map(str, batch.pods))}."
            yield f"GPU {index[step.frees]} of node {step.node} is idle."

    @contextlib.asynccontextmanager
    async def _cordoned(self, step: DefragStep) -> AsyncIterator[None]:
        """Nothing new is placed on the GPU meanwhile."""
        if await self._is_cordoned(step):
            yield
            return
        await self._mover.cordoning(step)
        try:
            await set_cordoned(self._kube, step.node, step.frees, cordoned=True)
            await self._await_cordon(step)
            yield
        finally:
            await set_cordoned(self._kube, step.node, step.frees, cordoned=False)
            await self._mover.uncordoned()

    async def _await_cordon(self, step: DefragStep) -> None:
        started = self._clock.monotonic()
        while not await self._is_cordoned(step):
            if self._clock.monotonic() - started >= self._patience_s:
                raise Outside(
                    f"the agent of node {step.node} does not report GPU {step.frees} as cordoned; no pod was moved "
                    "from it"
                )
            await self._clock.sleep(_EVERY_S)

    async def _is_cordoned(self, step: DefragStep) -> bool:
        try:
            inventory = read_inventory(await self._kube.get(INVENTORIES, step.node))
        except NotFound:
            return False
        return any(gpu.uuid == step.frees and gpu.cordoned for gpu in inventory.gpus)

    async def _move(self, step: DefragStep, batch: Batch) -> None:
        """Evict the batch and wait for what takes its place. Raises Outside."""
        cluster = await read(self._kube)
        before = list(_replaceable(cluster.pods, cluster.grants, cluster.config))
        if reason := changed(batch, before) or _without_place(batch, cluster):
            raise _aborted(reason)
        pods = _objects(batch, cluster)
        if violations(pods, (await self._kube.list(DISRUPTION_BUDGETS)).items):
            raise _aborted(f"pod {batch.pods[0]} cannot be evicted: that would violate a PodDisruptionBudget")
        await self._mover.evicting(len(pods))
        for moved, pod in zip(batch.pods, pods, strict=True):
            try:
                await self._mover.evict(pod, step)
            except Outside as error:
                raise _aborted(f"pod {moved} cannot be evicted: {error}") from error
        known, started = {obj["metadata"]["uid"] for obj in cluster.pods}, self._clock.monotonic()
        while True:
            waited = self._clock.monotonic() - started
            found = outcome(
                batch, await self._now(batch, cluster.config), known, waited_s=waited, patience_s=self._patience_s
            )
            if found.state is BatchState.FAILED:
                raise _aborted(found.reason)
            if found.state is BatchState.DONE:
                return
            await self._clock.sleep(_EVERY_S)

    async def _now(self, batch: Batch, config: Config) -> list[MovedPod]:
        """The pods in the namespaces of the batch as they are now."""
        found: list[MovedPod] = []
        for namespace in sorted({pod.namespace for pod in batch.pods}):
            pods = (await self._kube.list(PODS, namespace=namespace)).items
            grants = readable(grant_record, (await self._kube.list(GRANTS, namespace=namespace)).items)
            found += _replaceable(pods, {record.grant.pod_uid: record.grant for record in grants}, config)
        return found


def _replaceable(pods: Iterable[Object], grants: Mapping[str, Grant], config: Config) -> Iterator[MovedPod]:
    """The pods that a controller replaces when they are evicted. `grants` are by the UID of their pod."""
    for pod in pods:
        meta = pod["metadata"]
        owner = next((each["uid"] for each in meta.get("ownerReferences") or () if each.get("controller")), "")
        if owner:
            grant = grants.get(meta["uid"])
            yield MovedPod(
                uid=meta["uid"],
                namespace=meta["namespace"],
                name=meta["name"],
                owner=owner,
                gpus=frozenset(taken_by(grant.containers)) if grant is not None else frozenset(),
                running=(pod.get("status") or {}).get("phase") == "Running",
                group=str(group_of(pod, config) or ""),
            )


def _objects(batch: Batch, cluster: ClusterView) -> list[Object]:
    by_uid: dict[str, Object] = {pod["metadata"]["uid"]: pod for pod in cluster.pods}
    return [by_uid[pod.uid] for pod in batch.pods]


def _without_place(batch: Batch, cluster: ClusterView) -> str:
    """Which pod of the batch would fit nowhere else now, as a sentence, or nothing."""
    for each, pod in zip(batch.pods, _objects(batch, cluster), strict=True):
        try:
            explanation = cluster.explain(pod)
        except BadInput as problem:
            return f"pod {each} could not be placed: {problem}"
        if explanation is None or not explanation.fitting:
            return f"pod {each} fits nowhere else now"
    return ""


def _aborted(reason: str) -> Outside:
    return Outside(f"{reason}; the rest of the plan is not carried out")
