"""Look after the control daemons of a node: one for each GPU that it shares by MPS.

At every look each daemon is asked for its limits. One that does not answer, and one that has other limits than it was
given, is brought up again, after a while that grows. A daemon that an earlier agent made is taken over as it is. It
goes when the configuration does, or wants other limits, but not before its last container has ended; and it is never
started while somebody uses the GPU in another way.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from lamina.agent.mps.kept import Kept, Made
from lamina.agent.mps.limits import Limits, limits
from lamina.agent.mps.starting import Steps
from lamina.agent.mps.trials import Trials
from lamina.agent.offer import Offer
from lamina.agent.record import Allocation
from lamina.errors import BadInput, Outside
from lamina.model.gpus import Mode
from lamina.model.mps import MpsDaemon, MpsState
from lamina.ports.clock import Clock
from lamina.ports.mps import Hangs, Home
from lamina.ports.nvml import Nvml

log = logging.getLogger(__name__)

MOST_SILENT = 3
"""Questions without an answer after which a daemon is ended."""
_MOST_NAMED = 3

Tell = Callable[[MpsDaemon], Awaitable[None]]
"""Told each daemon whose state has changed."""


class Users(NamedTuple):
    """Pods with containers on a GPU: those that are there by MPS, and others."""

    clients: list[str]
    others: list[str]


class Daemons:
    """The daemons of one node. A GPU is offered `replicas` times by MPS; 0 is that the node does not share so."""

    def __init__(
        self,
        *,
        nvml: Nvml,
        steps: Steps,
        kept: Kept,
        offer: Offer,
        allocations: Callable[[], Iterable[Allocation]],
        root: Path,
        replicas: int,
        clock: Clock,
        tell: Tell,
    ) -> None:
        self._nvml = nvml
        self._steps = steps
        self._kept = kept
        self._offer = offer
        self._allocations = allocations
        self._root = root
        self._replicas = replicas
        self._clock = clock
        self._tell = tell
        self._trials: dict[str, Trials] = {}
        self._now: dict[str, MpsDaemon] = {}
        for gpu in kept.gpus:
            self._now[gpu] = self._daemon(gpu, MpsState.STARTING, "the agent has just begun")
        offer.by_mps(self._now)

    async def take_over(self) -> None:
        """Find out which daemons of an earlier agent run as they should, so that they serve without a break."""
        for gpu in sorted(self._kept.gpus):
            made = self._kept.get(gpu)
            assert made is not None
            try:
                if made == self._wish(gpu) and await self._steps.limits_of(self.home(gpu)) == made.limits:
                    self._now[gpu] = self._daemon(gpu, MpsState.READY)
            except (BadInput, Outside) as reason:
                log.info("MPS on %s is not taken over yet: %s", gpu, reason)
        self._offer.by_mps(self._now)

    async def look(self) -> None:
        """Bring every daemon one step nearer to what is wanted. Nothing is raised: what fails is a state."""
        inventory = self._offer.inventory.value
        if inventory is None:
            return
        wanted = {gpu.uuid for gpu in inventory.gpus} if self._replicas else set()
        await asyncio.gather(*(self._look_at(gpu, gpu in wanted) for gpu in sorted(wanted | self._kept.gpus)))
        for gpu in self._now.keys() - wanted - self._kept.gpus:
            del self._now[gpu]
        self._offer.by_mps(self._now)

    def home(self, gpu: str) -> Home:
        made = self._kept.get(gpu)
        return Home(gpu, Path(made.root) if made else self._root)

    async def _look_at(self, gpu: str, wanted: bool) -> None:
        before = self._now.get(gpu)
        try:
            found = await self._step(gpu, wanted)
        except Outside as error:
            found = self._daemon(gpu, MpsState.FAILED, str(error))
        self._now[gpu] = found
        if before is None or (before.state, before.reason) != (found.state, found.reason):
            log.info("MPS on %s is %s%s", gpu, found.state.value, f": {found.reason}" if found.reason else "")
            await self._tell(found)

    async def _step(self, gpu: str, wanted: bool) -> MpsDaemon:
        made, users = self._kept.get(gpu), self._users(gpu)
        try:
            wish = self._wish(gpu) if wanted else None
        except BadInput as refused:
            if made is None:
                return self._daemon(gpu, MpsState.FAILED, str(refused))
            wish = None
        if made is not None and made != wish and not users.clients:
            return await self._down(gpu)
        target = made or wish
        assert target is not None
        trouble = await self._well(gpu, made, target)
        if trouble is not None:
            return trouble
        if wish is not None and wish != target:
            reason = f"{_named('pod', users.clients)} still there with {target.limits} for each client"
            return self._daemon(gpu, MpsState.WAITING, reason)
        return self._daemon(gpu, MpsState.READY)

    async def _well(self, gpu: str, made: Made | None, target: Made) -> MpsDaemon | None:
        """See to it that the daemon runs with these limits; its state where it does not."""
        trials, home = self._trials.setdefault(gpu, Trials()), Home(gpu, Path(target.root))
        if made is not None:
            try:
                found = await self._steps.limits_of(home)
            except Hangs as error:
                trials.silent += 1
                if trials.silent < MOST_SILENT:
                    return self._daemon(gpu, MpsState.FAILED, str(error))
            except Outside as error:
                log.debug("%s", error)
            else:
                if found != target.limits:
                    await self._steps.configure(home, target.limits)
                await self._nvml.set_exclusive(gpu, True)
                trials.well(self._clock.monotonic())
                return None
        return await self._restart(home, target.limits, trials)

    async def _restart(self, home: Home, wanted: Limits, trials: Trials) -> MpsDaemon | None:
        """Start the daemon if it may be; its state unless it runs then."""
        state, now = self._offer.gpus.get(home.gpu), self._clock.monotonic()
        if state is None or not state.healthy:
            reason = f"the GPU is not healthy: {state.reason}" if state else "NVML does not list the GPU"
            return self._daemon(home.gpu, MpsState.WAITING, reason)
        if not trials.may_start(now):
            before = self._now.get(home.gpu)
            return before if before and not before.ready else self._daemon(home.gpu, MpsState.FAILED, "it has ended")
        await self._steps.clear(home)
        pids = [str(process.pid) for process in await self._nvml.processes(home.gpu)]
        others = self._users(home.gpu).others  # again, for time has passed
        if others or pids:
            who = _named("pod", others) if others else _named("process", pids)
            return self._daemon(home.gpu, MpsState.WAITING, f"{who} using the GPU")
        self._begin(home.gpu, wanted)
        trials.began(now)
        await self._steps.up(home, wanted)
        trials.well(now)
        return None

    def _begin(self, gpu: str, wanted: Limits) -> None:
        """From here on nobody gets the GPU in another way."""
        starting = self._daemon(gpu, MpsState.STARTING, "it is being started")
        self._now[gpu] = structs.replace(starting, memory_mib=wanted.memory_mib, threads_percent=wanted.threads_percent)
        self._offer.by_mps(self._now)

    async def _down(self, gpu: str) -> MpsDaemon:
        """Take a daemon down that nobody uses. Nobody new may come from here on."""
        stopping = self._daemon(gpu, MpsState.STOPPING, "the configuration wants it no more, or with other limits")
        self._now[gpu] = stopping
        self._offer.by_mps(self._now)
        await self._steps.down(self.home(gpu), present=gpu in self._offer.gpus)
        self._trials.pop(gpu, None)
        return stopping

    def _wish(self, gpu: str) -> Made | None:
        state = self._offer.gpus.get(gpu)
        if state is None or not self._replicas:
            return None
        return Made(root=str(self._root), limits=limits(state.facts, self._replicas))

    def _users(self, gpu: str) -> Users:
        found = Users([], [])
        for bound in (each.bound for each in self._allocations() if each.bound):
            if gpu in bound.gpus:
                (found.clients if bound.mode is Mode.MPS else found.others).append(f"{bound.namespace}/{bound.pod}")
        return found

    def _daemon(self, gpu: str, state: MpsState, reason: str = "") -> MpsDaemon:
        made = self._kept.get(gpu)
        given = made.limits if made else Limits(memory_mib=0, threads_percent=0)
        return MpsDaemon(
            gpu=gpu,
            state=state,
            reason=reason,
            memory_mib=given.memory_mib,
            threads_percent=given.threads_percent,
        )


def _named(what: str, names: list[str]) -> str:
    """`process 4711 is`, `pods a, b, c and 2 more are`."""
    each = sorted(set(names))
    more = f" and {len(each) - _MOST_NAMED} more" if len(each) > _MOST_NAMED else ""
    plural = {"pod": "pods", "process": "processes"}[what]
    subject, verb = (what, "is") if len(each) == 1 else (plural, "are")
    return f"{subject} {', '.join(each[:_MOST_NAMED])}{more} {verb}"


async def keeping_mps(daemons: Daemons, clock: Clock, *, poll_s: float) -> None:
    """Look for ever."""
    while True:
        await daemons.look()
        await clock.sleep(poll_s)
