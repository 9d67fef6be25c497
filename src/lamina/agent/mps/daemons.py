"""Supervises the MPS daemons of a node: one for each GPU that it shares this way, because its configuration says so or
because containers with grants are clients there.

At every look each daemon is asked for its limits. One that does not answer, or has other limits than it was given, is
restarted after a growing pause. A daemon that an earlier agent started is taken over as it is. A daemon stops when the
configuration no longer needs it or needs other limits, but not before its last container has ended, and it is never
started while the GPU is in use in another way.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from lamina.agent.context import NodeContext
from lamina.agent.inventory.native_devices import all_native
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.mps.clients import ClientLimits, client_limits
from lamina.agent.mps.lifecycle import DaemonLifecycle, Ensured, JournaledDaemon
from lamina.agent.state.holdings import Bound
from lamina.core.gpus import Mode
from lamina.core.mps import MpsDaemon, MpsState
from lamina.errors import BadInput, NotYet, Outside
from lamina.ports.kube import PODS
from lamina.ports.mps import Hangs, Home, MpsServiceDown
from lamina.ports.polling import poll

log = logging.getLogger(__name__)

_MAX_NAMES = 3
_KIND = "MPS daemon"

ReportDaemon = Callable[[MpsDaemon], Awaitable[None]]
"""Called with each daemon whose state changes."""


class GpuPods(NamedTuple):
    """Pods with containers on a GPU: MPS clients, and others."""

    clients: list[str]
    others: list[str]


class SharedGpus(NamedTuple):
    """A GPU has `replicas` with MPS; 0 if the configuration does not say so. `root` is the MPS directory."""

    replicas: int
    root: Path


class DaemonSupervisor:
    """The daemons of one node."""

    def __init__(
        self,
        node: NodeContext,
        offers: NodeOfferStore,
        shared: SharedGpus,
        *,
        lifecycle: DaemonLifecycle,
        report: ReportDaemon,
    ) -> None:
        self._node = node
        self._offers = offers
        self._shared = shared
        self.lifecycle = lifecycle
        self._journal = lifecycle.journal
        self._report = report
        self._daemons: dict[str, MpsDaemon] = {}
        self._unreported: set[str] = set()
        """GPUs whose daemons were taken over. The earlier agent may not have reported that they are ready."""
        self._served = set(self._journal.gpus)
        """GPUs whose daemon may have clients: it ran when it was asked last, or when the agent started."""
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        for gpu in self._journal.gpus:
            self._daemons[gpu] = self._daemon(gpu, MpsState.STARTING, "the agent has just started")
        self._advertise()

    async def run(self) -> None:
        """Reconcile forever."""
        await poll(self.reconcile, self._node.clock, every_s=self._node.settings.poll_s)

    async def take_over(self) -> None:
        """Find out which daemons of an earlier agent run as they should, so that they serve without a break."""
        for gpu in sorted(self._journal.gpus):
            journaled = self._journal.get(gpu)
            assert journaled is not None
            try:
                as_desired = journaled == self._desired(gpu)
                if as_desired and await self.lifecycle.limits_of(self.home(gpu)) == journaled.limits:
                    self._daemons[gpu] = self._daemon(gpu, MpsState.READY)
                    self._unreported.add(gpu)
            except (BadInput, Outside) as reason:
                log.info("Not taking over the MPS daemon of %s yet: %s", gpu, reason)
            except Exception as error:
                self._node.aside.add(_KIND, gpu, error)
        self._advertise()

    async def reconcile(self) -> None:
        """Bring every daemon one step closer to its desired state. Raises nothing: a failure is a state."""
        inventory = self._offers.inventory.value
        if inventory is None:
            return
        wanted = {gpu.uuid for gpu in inventory.gpus} if self._shared.replicas else set(self._granted())
        wanted -= self._offers.state.to_partition
        await asyncio.gather(*(self._look_at(gpu, gpu in wanted) for gpu in sorted(wanted | self._journal.gpus)))
        self._forget(self._daemons.keys() - wanted)

    async def provide(self, gpus: Iterable[str]) -> None:
        """Have the daemons run of GPUs that the record has for clients with grants. Raises NotYet with the reason."""
        for gpu in gpus:
            await self._look_at(gpu, gpu not in self._offers.state.to_partition)
            self._advertise()
            require_ready(gpu, self._daemons[gpu])

    async def vacate(self, gpus: Iterable[str]) -> None:
        """End the daemons without clients of GPUs that a container needs in another mode. Raises NotYet."""
        for gpu in gpus:
            if gpu in self._journal.gpus and not self._shared.replicas:
                await self._look_at(gpu, wanted=False)
                self._forget({gpu})
            if gpu in self._journal.gpus:
                raise NotYet(f"{gpu} is in mode mps, and its daemon is {self._daemons[gpu].state.value}")

    def _forget(self, gpus: Collection[str]) -> None:
        """Advertise, without what ran on GPUs where nothing is left."""
        for gpu in set(gpus) - self._journal.gpus:
            self._daemons.pop(gpu, None)
        self._advertise()

    def home(self, gpu: str) -> Home:
        journaled = self._journal.get(gpu)
        return Home(gpu, Path(journaled.root) if journaled else self._shared.root)

    def _advertise(self) -> None:
        self._offers.update(daemons=dict(self._daemons))

    async def _look_at(self, gpu: str, wanted: bool) -> None:
        async with self._turns[gpu]:
            await self._take_step(gpu, wanted)

    async def _take_step(self, gpu: str, wanted: bool) -> None:
        before = self._daemons.get(gpu)
        try:
            daemon = await self._step(gpu, wanted)
        except Outside as error:
            daemon = self._daemon(gpu, MpsState.FAILED, str(error))
        except Exception as error:
            self._node.aside.add(_KIND, gpu, error)
            daemon = self._daemon(gpu, MpsState.FAILED, str(error) or type(error).__name__)
        else:
            self._node.aside.forget(_KIND, gpu)
        self._daemons[gpu] = daemon
        changed = before is None or (before.state, before.reason) != (daemon.state, daemon.reason)
        if changed or gpu in self._unreported:
            self._unreported.discard(gpu)
            log.info("MPS on %s is %s%s", gpu, daemon.state.value, f": {daemon.reason}" if daemon.reason else "")
            await self._report(daemon)

    async def _step(self, gpu: str, wanted: bool) -> MpsDaemon:
        journaled, pods = self._journal.get(gpu), self._pods(gpu)
        try:
            desired = self._desired(gpu) if wanted else None
        except BadInput as refusal:
            if journaled is None:
                return self._daemon(gpu, MpsState.FAILED, str(refusal))
            desired = None
        if journaled is not None and journaled != desired and not pods.clients:
            return await self._stop(gpu)
        target = journaled or desired
        if target is None:  # no client is left that had a grant
            return self._daemon(gpu, MpsState.STOPPING, "no container needs it")
        not_ready = await self._ensure_running(gpu, target)
        if not_ready is not None:
            return not_ready
        if desired is not None and desired != target:
            reason = f"{_subject('pod', pods.clients)} still running with {target.limits} for each client"
            return self._daemon(gpu, MpsState.WAITING, reason)
        return self._daemon(gpu, MpsState.READY)

    async def _ensure_running(self, gpu: str, target: JournaledDaemon) -> MpsDaemon | None:
        """Make the daemon run with the limits of `target`. Returns its state if it does not run."""
        hindrance, reserve = partial(self._hindrance, gpu), partial(self._reserve, gpu, target)
        try:
            ensured = await self.lifecycle.ensure(target, hindrance, reserve)
        except (MpsServiceDown, Hangs):
            raise  # it may run
        except NotYet as reason:
            await self._report_end(gpu)
            return self._daemon(gpu, MpsState.WAITING, str(reason))
        except Outside:
            await self._report_end(gpu)
            raise
        if ensured is not Ensured.RUNS:
            await self._report_end(gpu)
        if ensured is Ensured.PAUSES:
            before = self._daemons.get(gpu)
            return before if before and not before.ready else self._daemon(gpu, MpsState.FAILED, "it has ended")
        self._served.add(gpu)
        return None

    async def _report_end(self, gpu: str) -> None:
        """Tell the pods whose programs have lost a daemon that ran. It is started again, and they are not."""
        if gpu not in self._served:
            return
        self._served.remove(gpu)
        message = f"the MPS daemon of {gpu} has ended, so programs that used the GPU through it fail until they restart"
        clients = [bound for bound in self._users(gpu) if bound.mode is Mode.MPS]
        for pod in sorted({(each.namespace, each.pod, each.pod_uid) for each in clients}):
            about = {"metadata": dict(zip(("namespace", "name", "uid"), pod, strict=True))}
            await self._node.events.record(PODS, about, "MpsEnded", message, warning=True)

    def _hindrance(self, gpu: str, pids: Sequence[str]) -> str:
        observed, others = self._offers.gpus.get(gpu), self._pods(gpu).others
        if observed is None:
            return "NVML does not list the GPU"
        if not observed.healthy:
            return f"the GPU is unhealthy: {observed.reason}"
        if gpu in self._offers.state.to_partition:
            return "the node's label partitions the GPU"
        users = _subject("pod", others) if others else _subject("process", pids) if pids else ""
        return f"{users} using the GPU" if users else ""

    def _reserve(self, gpu: str, target: JournaledDaemon) -> None:
        """From here on no container gets the GPU in another way."""
        starting, limits = self._daemon(gpu, MpsState.STARTING, "it is starting"), target.limits
        self._daemons[gpu] = structs.replace(
            starting,
            memory_mib=limits.memory_mib,
            threads_percent=limits.threads_percent,
            for_grants=target.for_grants,
        )
        self._advertise()

    async def _stop(self, gpu: str) -> MpsDaemon:
        """Stop a daemon without clients. From here on no new client starts."""
        self._served.discard(gpu)
        stopping = self._daemon(gpu, MpsState.STOPPING, "the configuration does not need it, or needs other limits")
        self._daemons[gpu] = stopping
        self._advertise()
        journaled = self._journal.get(gpu)
        assert journaled is not None
        await self.lifecycle.stop(journaled, present=gpu in self._offers.gpus)
        return stopping

    def _desired(self, gpu: str) -> JournaledDaemon | None:
        observed = self._offers.gpus.get(gpu)
        if observed is None or not (self._shared.replicas or gpu in self._granted()):
            return None
        # Clients with grants bring limits of their own, and the daemon's are those of the whole GPU.
        limits = client_limits(observed.facts, self._shared.replicas or 1)
        return JournaledDaemon(
            gpu=gpu, root=str(self._shared.root), limits=limits, for_grants=not self._shared.replicas
        )

    def _granted(self) -> Iterator[str]:
        """The GPUs on which containers with grants are clients."""
        for allocation in self._node.record.allocations:
            if allocation.bound and allocation.bound.mode is Mode.MPS and not all_native(allocation.tickets):
                yield from allocation.bound.gpus

    def _users(self, gpu: str) -> Iterator[Bound]:
        """The containers on a GPU."""
        for allocation in self._node.record.allocations:
            if allocation.bound and gpu in allocation.bound.gpus:
                yield allocation.bound

    def _pods(self, gpu: str) -> GpuPods:
        pods = GpuPods([], [])
        for bound in self._users(gpu):
            (pods.clients if bound.mode is Mode.MPS else pods.others).append(f"{bound.namespace}/{bound.pod}")
        if gpu in self._node.record.claimed:
            pods.others.append(f"of the ResourceClaim {self._node.record.claimed[gpu]}")
        return pods

    def _daemon(self, gpu: str, state: MpsState, reason: str = "") -> MpsDaemon:
        journaled = self._journal.get(gpu)
        limits = journaled.limits if journaled else ClientLimits(memory_mib=0, threads_percent=0)
        return MpsDaemon(
            gpu=gpu,
            state=state,
            reason=reason,
            memory_mib=limits.memory_mib,
            threads_percent=limits.threads_percent,
            for_grants=journaled is not None and journaled.for_grants,
        )


def require_ready(gpu: str, daemon: MpsDaemon | None) -> None:
    """Raises NotYet while the daemon is not ready. Without it a program would run without limits."""
    if daemon is None or not daemon.ready:
        state = f"{daemon.state.value}: {daemon.reason}" if daemon else "not started yet"
        raise NotYet(f"MPS on {gpu} is {state}")


def _subject(noun: str, names: Sequence[str]) -> str:
    """`process 4711 is`, `pods a, b, c and 2 more are`."""
    distinct = sorted(set(names))
    more = f" and {len(distinct) - _MAX_NAMES} more" if len(distinct) > _MAX_NAMES else ""
    plural = {"pod": "pods", "process": "processes"}[noun]
    subject, verb = (noun, "is") if len(distinct) == 1 else (plural, "are")
    return f"{subject} {', '.join(distinct[:_MAX_NAMES])}{more} {verb}"
