"""Polls NVML and waits for errors of the driver, and updates the advertisement with what it finds."""

import logging
from collections.abc import Awaitable, Callable, Iterable

from lamina.agent.inventory.advertisement import Advertisement
from lamina.agent.inventory.checked_nvml import CheckedNvml
from lamina.agent.state.gpu_health import HealthTracker
from lamina.configuration import HealthRules
from lamina.core.gpus import Gpu, Inventory
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import NODES, EventRecorder
from lamina.ports.nvml import GpuFacts

log = logging.getLogger(__name__)

ReportHealth = Callable[[str, str], Awaitable[None]]
"""Called with the UUID of a GPU and why it is unhealthy now; an empty reason means that it is healthy again."""


class GpuMonitor:
    """Raises nothing: a failure of NVML is a reason why GPUs are unhealthy."""

    def __init__(
        self,
        nvml: CheckedNvml,
        advertisement: Advertisement,
        clock: Clock,
        *,
        poll_s: float,
        rules: HealthRules,
        before: Inventory | None,
        report: ReportHealth,
    ) -> None:
        """`before` is what the node published last: until NVML answers, these GPUs are known and unhealthy."""
        self._nvml = nvml
        self._advertisement = advertisement
        self._clock = clock
        self._poll_s = poll_s
        self._health = HealthTracker(rules, known_facts(before.gpus) if before else ())
        self._driver = before.driver if before else ""
        self._report = report
        self._reported: dict[str, str] = {}

    async def run(self) -> None:
        while True:
            await self.look()
            await self.listen()

    async def look(self) -> None:
        """Ask NVML for the GPUs."""
        try:
            self._driver = await self._nvml.driver_version()
            self._health.record_listing(await self._nvml.gpus(), self._clock.monotonic())
        except Outside as error:
            self._health.record_outage(str(error))
        self._advertisement.looked_at = self._clock.wall()
        await self._update()

    async def listen(self) -> None:
        """Wait for an error that the driver reports, at most until the next look is due."""
        try:
            event = await self._nvml.wait_event(self._poll_s)
        except Outside:
            await self._clock.sleep(self._poll_s)
            return
        if event is not None:
            self._health.record_error(event, self._clock.monotonic())
            await self._update()

    async def _update(self) -> None:
        gpus = self._health.gpus()
        self._advertisement.update(driver=self._driver, observed=gpus)
        reasons = {gpu.facts.uuid: gpu.reason for gpu in gpus}
        before, self._reported = self._reported, reasons
        for uuid, reason in reasons.items():
            if reason != before.get(uuid, ""):
                if reason:
                    log.warning("%s is unhealthy: %s", uuid, reason)
                else:
                    log.info("%s is healthy again", uuid)
                await self._report(uuid, reason)


def known_facts(gpus: Iterable[Gpu]) -> tuple[GpuFacts, ...]:
    """What an inventory says of its GPUs."""
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


def health_events(recorder: EventRecorder, node: str) -> ReportHealth:
    """Reports health as events on the node. kubectl finds a node's events by its name in place of the UID."""
    meta = {"metadata": {"name": node, "uid": node}}

    async def report(uuid: str, reason: str) -> None:
        event, message = ("GpuUnhealthy", f"{uuid}: {reason}") if reason else ("GpuHealthy", f"{uuid} is healthy again")
        await recorder.record(NODES, meta, event, message, warning=bool(reason))

    return report
