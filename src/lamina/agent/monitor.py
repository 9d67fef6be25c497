"""Look at the GPUs again and again, and tell the offer what they are."""

import logging
from collections.abc import Awaitable, Callable, Iterable

from lamina.agent.health import HealthBook
from lamina.agent.offer import Offer
from lamina.dialects.sections import Health
from lamina.errors import Outside
from lamina.model.gpus import Gpu, Inventory
from lamina.ports.clock import Clock
from lamina.ports.kube import NODES, EventRecorder
from lamina.ports.nvml import GpuFacts, Nvml

log = logging.getLogger(__name__)

Tell = Callable[[str, str], Awaitable[None]]
"""Told the UUID of a GPU and why it is not healthy now; an empty reason is that it is healthy again."""


class Monitor:
    """Keeps an offer true. Nothing is raised: what NVML does not tell is a reason why GPUs are not healthy."""

    def __init__(
        self,
        nvml: Nvml,
        offer: Offer,
        clock: Clock,
        *,
        poll_s: float,
        rules: Health,
        before: Inventory | None,
        tell: Tell,
    ) -> None:
        """`before` is what the node published last: while NVML is silent, these GPUs are known and not healthy."""
        self._nvml = nvml
        self._offer = offer
        self._clock = clock
        self._poll_s = poll_s
        self._book = HealthBook(rules, facts_of(before.gpus) if before else ())
        self._driver = before.driver if before else ""
        self._tell = tell
        self._told: dict[str, str] = {}

    async def run(self) -> None:
        while True:
            await self.look()
            await self.listen()

    async def look(self) -> None:
        """Ask NVML for the GPUs."""
        try:
            self._driver = await self._nvml.driver_version()
            self._book.answered(await self._nvml.gpus(), self._clock.monotonic())
        except Outside as error:
            self._book.silent(str(error))
        await self._observed()

    async def listen(self) -> None:
        """Wait for an error that the driver reports, at most until it is time to look again."""
        try:
            event = await self._nvml.wait_event(self._poll_s)
        except Outside:
            await self._clock.sleep(self._poll_s)
            return
        if event is not None:
            self._book.struck(event, self._clock.monotonic())
            await self._observed()

    async def _observed(self) -> None:
        states = self._book.states()
        self._offer.observed(self._driver, states)
        reasons = {state.facts.uuid: state.reason for state in states}
        before, self._told = self._told, reasons
        for uuid, reason in reasons.items():
            if reason != before.get(uuid, ""):
                log.warning("%s is not healthy: %s", uuid, reason) if reason else log.info("%s is healthy again", uuid)
                await self._tell(uuid, reason)


def facts_of(gpus: Iterable[Gpu]) -> tuple[GpuFacts, ...]:
    """What an inventory tells of its GPUs."""
    listed = tuple(gpus)
    return tuple(
        GpuFacts(
            uuid=gpu.uuid,
            index=gpu.index,
            name=gpu.model,
            memory_mib=gpu.memory_mib,
            mig_capable=gpu.mig_capable,
            numa=gpu.numa,
            links={other.uuid: score for other, score in zip(listed, gpu.links, strict=False) if score},
        )
        for gpu in listed
    )


def events_on_node(recorder: EventRecorder, node: str) -> Tell:
    """Record on the node what befalls its GPUs. kubectl finds a node's events by its name in place of the UID."""
    meta = {"metadata": {"name": node, "uid": node}}

    async def tell(uuid: str, reason: str) -> None:
        word, text = ("GpuUnhealthy", f"{uuid}: {reason}") if reason else ("GpuHealthy", f"{uuid} is healthy again")
        await recorder.record(NODES, meta, word, text, warning=bool(reason))

    return tell
