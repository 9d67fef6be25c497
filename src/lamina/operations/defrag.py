"""`lamina defrag`: carry out what `lamina advise defrag` plans, one GPU and one batch of pods at a time.

The GPU that is to become idle is cordoned while its pods move, so that nothing comes back to it. Pods are evicted
through the eviction API, so PodDisruptionBudgets hold. When a batch does not move as planned, the rest of the plan is
not carried out. A GPU that was cordoned before stays cordoned, any other is uncordoned whatever happens.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator

from lamina.dialects.groups import group_of
from lamina.errors import BadInput, Outside
from lamina.model.ledger import taken_by
from lamina.operations.advise.defrag import plan
from lamina.operations.cluster_view import ClusterView, read
from lamina.operations.cordon import set_cordoned
from lamina.placement.eviction.defrag import DefragStep
from lamina.placement.eviction.relocation import Batch, BatchState, MovedPod, batches, changed, outcome
from lamina.ports.clock import Clock
from lamina.ports.kube import Kube, Object

_EVERY_S = 2.0


class Defragmentation:
    """One run over a cluster. `patience_s` is how long each cordon and each batch may take."""

    def __init__(self, kube: Kube, clock: Clock, *, patience_s: float) -> None:
        self._kube = kube
        self._clock = clock
        self._patience_s = patience_s

    async def run(self, cluster: ClusterView, most_moves: int) -> AsyncIterator[str]:
        """Move pods of the cluster, and yield a line for each thing done. Raises Outside where the plan is aborted."""
        index = {gpu.uuid: gpu.index for inventory in cluster.inventories.values() for gpu in inventory.gpus}
        holders = list(observed(cluster))
        for step in plan(cluster, most_moves):
            async with self._cordoned(step):
                for batch in batches(step, holders):
                    await self._move(batch)
                    yield f"Moved {', '.join(map(str, batch.pods))}."
            yield f"GPU {index[step.frees]} of node {step.node} is idle."

    @contextlib.asynccontextmanager
    async def _cordoned(self, step: DefragStep) -> AsyncIterator[None]:
        """Nothing new is placed on the GPU meanwhile."""
        if _is_cordoned(await read(self._kube), step):
            yield
            return
        await set_cordoned(self._kube, step.node, step.frees, cordoned=True)
        try:
            await self._await_cordon(step)
            yield
        finally:
            await set_cordoned(self._kube, step.node, step.frees, cordoned=False)

    async def _await_cordon(self, step: DefragStep) -> None:
        started = self._clock.monotonic()
        while not _is_cordoned(await read(self._kube), step):
            if self._clock.monotonic() - started >= self._patience_s:
                raise Outside(
                    f"the agent of node {step.node} does not report GPU {step.frees} as cordoned; no pod was moved "
                    "from it"
                )
            await self._clock.sleep(_EVERY_S)

    async def _move(self, batch: Batch) -> None:
        """Evict the batch and wait for what takes its place. Raises Outside."""
        cluster = await read(self._kube)
        before = list(observed(cluster))
        if reason := changed(batch, before) or _without_place(batch, cluster):
            raise _aborted(reason)
        for pod in batch.pods:
            try:
                await self._kube.evict(pod.name, namespace=pod.namespace, uid=pod.uid)
            except Outside as error:
                raise _aborted(f"pod {pod} cannot be evicted: {error}") from error
        known, started = {obj["metadata"]["uid"] for obj in cluster.pods}, self._clock.monotonic()
        while True:
            waited = self._clock.monotonic() - started
            now = list(observed(await read(self._kube)))
            found = outcome(batch, now, known, waited_s=waited, patience_s=self._patience_s)
            if found.state is BatchState.FAILED:
                raise _aborted(found.reason)
            if found.state is BatchState.DONE:
                return
            await self._clock.sleep(_EVERY_S)


def observed(cluster: ClusterView) -> Iterator[MovedPod]:
    """The pods that a controller replaces when they are evicted."""
    for pod in cluster.pods:
        meta = pod["metadata"]
        owner = next((each["uid"] for each in meta.get("ownerReferences") or () if each.get("controller")), "")
        if owner:
            grant = cluster.grants.get(meta["uid"])
            yield MovedPod(
                uid=meta["uid"],
                namespace=meta["namespace"],
                name=meta["name"],
                owner=owner,
                gpus=frozenset(taken_by(grant.containers)) if grant is not None else frozenset(),
                running=(pod.get("status") or {}).get("phase") == "Running",
                group=str(group_of(pod) or ""),
            )


def _without_place(batch: Batch, cluster: ClusterView) -> str:
    """Which pod of the batch would fit nowhere else now, as a sentence, or nothing."""
    pods: dict[str, Object] = {pod["metadata"]["uid"]: pod for pod in cluster.pods}
    for each in batch.pods:
        try:
            explanation = cluster.explain(pods[each.uid])
        except BadInput as problem:
            return f"pod {each} could not be placed: {problem}"
        if explanation is None or not explanation.fitting:
            return f"pod {each} fits nowhere else now"
    return ""


def _is_cordoned(cluster: ClusterView, step: DefragStep) -> bool:
    inventory = cluster.inventories.get(step.node)
    return inventory is not None and any(gpu.uuid == step.frees and gpu.cordoned for gpu in inventory.gpus)


def _aborted(reason: str) -> Outside:
    return Outside(f"{reason}; the rest of the plan is not carried out")
