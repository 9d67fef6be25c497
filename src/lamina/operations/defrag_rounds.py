"""Defragmentation by the controller: the leader makes GPUs idle within an hourly budget of moves.

Each round makes one plan, as `lamina defrag` does, and carries out its first step. Pods that a PodDisruptionBudget
holds are left out of the plan. After a step that was aborted, the controller pauses, and the pods of that step stay for
an hour.
"""

import asyncio
import logging
from collections.abc import Sequence

from lamina.controller.assembly import Controller
from lamina.errors import BadInput, Outside
from lamina.ledger.disruption import violations
from lamina.operations.advise.defrag import plan
from lamina.operations.cordon import set_cordoned
from lamina.operations.defrag import DefragRun, Unrecorded
from lamina.operations.defrag_record import HOUR_S, DefragRecord, RecordStore
from lamina.placement.eviction.defrag import DefragStep
from lamina.ports.kube import DISRUPTION_BUDGETS, NODES, PODS, Object
from lamina.ports.polling import FailureLog, poll
from lamina.report.cluster_view import ClusterView, read

log = logging.getLogger(__name__)

EVERY_S = 60.0
PATIENCE_S = 300.0
"""How long a cordon and a batch of pods may take."""
PAUSE_S = 600.0
"""How long no pod is moved after an aborted step."""
ABORTED, MOVED, FREED = "DefragmentationAborted", "MovedForDefragmentation", "GpuFreed"


async def defragment(controller: Controller) -> None:
    """Run rounds until canceled."""
    failures = FailureLog(log, "Defragmentation paused: %s")
    await poll(Rounds(controller).round, controller.context.clock, every_s=EVERY_S, delay_s=EVERY_S, failures=failures)


class Rounds:
    """The rounds of one replica."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._kube, self._clock = controller.context.kube, controller.context.clock
        self._store = RecordStore(self._kube, controller.election.identity)
        self._settled = False
        """Whether no cordon of an earlier leader is left."""
        self._paused_until = 0.0
        self._staying: dict[str, float] = {}
        """UIDs of pods of aborted steps, and until when they stay."""

    async def round(self) -> None:
        """Free one GPU if the budget allows it. Raises Outside for what cannot be asked."""
        most = self._controller.context.configuration.value.moves_per_hour
        if not self._controller.readiness:
            self._settled = False
            return
        if not most and self._settled:
            return
        record = await self._store.take()
        record = await self._settle(record)
        left = record.left(most, self._clock.wall())
        if left and self._clock.monotonic() >= self._paused_until:
            await self._free_one(record, left)

    async def _settle(self, record: DefragRecord) -> DefragRecord:
        """Uncordon the GPU that a replica left cordoned."""
        if record.cordoned is not None:
            node, gpu = record.cordoned
            try:
                await set_cordoned(self._kube, node, gpu, cordoned=False)
            except BadInput as problem:
                log.info("GPU %s of node %s stays as it is: %s", gpu, node, problem)
            record = DefragRecord(record.moves)
            await self._store.write(record)
        self._settled = True
        return record

    async def _free_one(self, record: DefragRecord, left: int) -> None:
        cluster = await read(self._kube, hosts=True)
        budgets = (await self._kube.list(DISRUPTION_BUDGETS)).items
        steps = plan(cluster, left, self._staying_pods(cluster, budgets))
        step, events = await asyncio.to_thread(next, steps, None), self._controller.events
        if step is None:
            return
        node: Object = {"metadata": {"name": step.node, "uid": self._controller.watches.uid_of_node(step.node)}}
        work = DefragRun(
            self._kube, self._clock, patience_s=PATIENCE_S, record=_Recorded(self._controller, self._store, record)
        )
        try:
            async for line in work.run(cluster, [step]):
                log.info("%s", line)
        except Outside as error:
            self._pause(cluster, step)
            self._controller.metrics.defragmentation.labels("aborted").inc()
            await events.record(NODES, node, ABORTED, f"GPU {step.frees} was not freed: {error}", warning=True)
            return
        self._controller.metrics.defragmentation.labels("freed").inc()
        pods = "1 pod was" if len(step.moves) == 1 else f"{len(step.moves)} pods were"
        await events.record(NODES, node, FREED, f"GPU {step.frees} is idle; {pods} moved.")

    def _staying_pods(self, cluster: ClusterView, budgets: Sequence[Object]) -> set[str]:
        """UIDs of pods that no plan may move now."""
        now = self._clock.monotonic()
        self._staying = {uid: until for uid, until in self._staying.items() if until > now}
        held = {pod["metadata"]["uid"] for pod in cluster.pods if violations([pod], budgets)}
        return held | self._staying.keys()

    def _pause(self, cluster: ClusterView, step: DefragStep) -> None:
        """Move nothing for a while, and the pods of the step not for an hour."""
        moved = {move.pod for move in step.moves}
        now = self._clock.monotonic()
        self._paused_until, until = now + PAUSE_S, now + HOUR_S
        for pod in cluster.pods:
            meta = pod["metadata"]
            if f"{meta['namespace']}/{meta['name']}" in moved:
                self._staying[meta["uid"]] = until


class _Recorded(Unrecorded):
    """Writes the record before each change, which only the leader may make."""

    def __init__(self, controller: Controller, store: RecordStore, record: DefragRecord) -> None:
        self._controller = controller
        self._store = store
        self._record = record

    async def cordoning(self, step: DefragStep) -> None:
        await self._write(DefragRecord(self._record.moves, (step.node, step.frees)))

    async def evicting(self, step: DefragStep, pods: Sequence[Object]) -> None:
        await self._write(self._record.with_moves(len(pods), self._controller.context.clock.wall()))
        for pod in pods:
            message = f"Evicted so that GPU {step.frees} of node {step.node} becomes idle"
            await self._controller.events.record(PODS, pod, MOVED, message)
            self._controller.metrics.moved_pods.inc()

    async def uncordoned(self) -> None:
        self._record = DefragRecord(self._record.moves)
        await self._store.write(self._record)

    async def _write(self, record: DefragRecord) -> None:
        if not self._controller.readiness:
            raise Outside(f"{self._controller.readiness.reason}; the rest of the plan is not carried out")
        await self._store.write(record)
        self._record = record
