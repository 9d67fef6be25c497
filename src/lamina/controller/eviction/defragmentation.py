"""Defragmentation by the controller: the leader makes GPUs idle within an hourly budget of moves.

Each time it makes one plan, as `lamina defrag` does, and carries out its first step. Pods that a PodDisruptionBudget
holds are left out of the plan. After a step that was aborted, the controller pauses, and the pods of that step stay for
an hour.
"""

import asyncio
import logging
from collections.abc import Sequence

from lamina.controller.context import Context
from lamina.controller.eviction.defrag_record import HOUR_S, DefragRecord, RecordStore
from lamina.controller.eviction.evictor import Evictor
from lamina.controller.metrics import Metrics
from lamina.controller.observation.watches import Watches
from lamina.defragmentation.cordon import set_cordoned
from lamina.defragmentation.plan import plan
from lamina.defragmentation.run import DefragRun, Mover
from lamina.errors import BadInput, Outside
from lamina.ledger.disruption import violations
from lamina.placement.eviction.defrag import DefragStep
from lamina.ports.kube import DISRUPTION_BUDGETS, NODES, Object
from lamina.report.cluster_reader import read
from lamina.report.cluster_view import ClusterView

log = logging.getLogger(__name__)

EVERY_S = 60.0
PATIENCE_S = 300.0
"""How long a cordon and a batch of pods may take."""
PAUSE_S = 600.0
"""How long no pod is moved after an aborted step."""
ABORTED, MOVED, FREED = "DefragmentationAborted", "MovedForDefragmentation", "GpuFreed"


class Defragmenter(Mover):
    """The defragmentation of one replica."""

    def __init__(
        self,
        context: Context,
        evictor: Evictor,
        watches: Watches,
        metrics: Metrics,
        identity: str,
    ) -> None:
        super().__init__(context.kube)
        self._context = context
        self._evictor = evictor
        self._watches = watches
        self._metrics = metrics
        self._store = RecordStore(context.kube, identity)
        self._record = DefragRecord()
        self._settled = False
        """Whether no cordon of an earlier leader is left."""
        self._paused_until = 0.0
        self._staying: dict[str, float] = {}
        """UIDs of pods of aborted steps, and until when they stay."""

    async def reconcile(self) -> None:
        """Free one GPU if the budget allows it. Raises Outside for what cannot be asked."""
        max_moves = self._context.configuration.value.defragmentation.moves_per_hour
        if not self._evictor.leading():
            self._settled = False
            return
        if not max_moves and self._settled:
            return
        self._record = await self._store.take()
        await self._settle()
        left = self._record.left(max_moves, self._context.clock.wall())
        if left and self._context.now() >= self._paused_until:
            await self._free_one(left)

    async def _settle(self) -> None:
        """Uncordon the GPU that a replica left cordoned."""
        if self._record.cordoned is not None:
            node, gpu = self._record.cordoned
            try:
                await set_cordoned(self._kube, node, gpu, cordoned=False)
            except BadInput as problem:
                log.info("GPU %s of node %s stays as it is: %s", gpu, node, problem)
            await self.uncordoned()
        self._settled = True

    async def _free_one(self, left: int) -> None:
        kube = self._kube
        cluster, budgets = await read(kube, hosts=True), (await kube.list(DISRUPTION_BUDGETS)).items
        step = await asyncio.to_thread(next, plan(cluster, left, self._staying_pods(cluster, budgets)), None)
        if step is None:
            return
        node: Object = {"metadata": {"name": step.node, "uid": self._watches.uid_of_node(step.node)}}
        work = DefragRun(kube, self._context.clock, patience_s=PATIENCE_S, mover=self)
        try:
            async for line in work.run(cluster, [step]):
                log.info("%s", line)
        except Outside as error:
            self._pause(cluster, step)
            self._metrics.defragmentation.labels("aborted").inc()
            message = f"GPU {step.frees} was not freed: {error}"
            await self._evictor.events.record(NODES, node, ABORTED, message, warning=True)
            return
        self._metrics.defragmentation.labels("freed").inc()
        pods = "1 pod was" if len(step.moves) == 1 else f"{len(step.moves)} pods were"
        await self._evictor.events.record(NODES, node, FREED, f"GPU {step.frees} is idle; {pods} moved.")

    def _staying_pods(self, cluster: ClusterView, budgets: Sequence[Object]) -> set[str]:
        """UIDs of pods that no plan may move now."""
        now = self._context.now()
        self._staying = {uid: until for uid, until in self._staying.items() if until > now}
        held = {pod["metadata"]["uid"] for pod in cluster.pods if violations([pod], budgets)}
        return held | self._staying.keys()

    def _pause(self, cluster: ClusterView, step: DefragStep) -> None:
        """Move nothing for a while, and the pods of the step not for an hour."""
        moved = {move.pod for move in step.moves}
        now = self._context.now()
        self._paused_until, until = now + PAUSE_S, now + HOUR_S
        for pod in cluster.pods:
            meta = pod["metadata"]
            if f"{meta['namespace']}/{meta['name']}" in moved:
                self._staying[meta["uid"]] = until

    async def cordoning(self, step: DefragStep) -> None:
        await self._write(DefragRecord(self._record.moves, (step.node, step.frees)))

    async def evicting(self, count: int) -> None:
        await self._write(self._record.with_moves(count, self._context.clock.wall()))

    async def evict(self, pod: Object, step: DefragStep) -> None:
        message = f"Evicted so that GPU {step.frees} of node {step.node} becomes idle"
        if not await self._evictor.evict(pod, MOVED, message):
            raise Outside("it is gone")
        self._metrics.moved_pods.inc()

    async def uncordoned(self) -> None:
        self._record = DefragRecord(self._record.moves)
        await self._store.write(self._record)

    async def _write(self, record: DefragRecord) -> None:
        """Write the record before the change that it is about, which only the leader may make."""
        self._evictor.check()
        await self._store.write(record)
        self._record = record
