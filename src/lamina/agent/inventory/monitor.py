"""Polls NVML and waits for errors of the driver, and reports what can be used of the answers.

A GPU that cannot be described in an Inventory is set aside, and counts as one that does not answer; the others are
listed. An unexpected failure is one of NVML.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from lamina.agent.inventory.builder import build_inventory
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.state.gpu_health import HealthTracker, ObservedGpu
from lamina.configuration import NodeSettings
from lamina.core.config_fields import Health
from lamina.core.gpus import Gpu, Inventory
from lamina.core.objects import read_inventory, write_spec
from lamina.errors import Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import NODES, EventRecorder
from lamina.ports.nvml import GpuFacts, Nvml, XidEvent
from lamina.ports.set_aside import SetAside

T = TypeVar("T")
_GPU, _ANSWER = "GPU", "answer of NVML"


class CheckedNvml:
    """Every call raises Outside."""

    def __init__(self, nvml: Nvml, settings: NodeSettings, aside: SetAside) -> None:
        self._nvml = nvml
        self._settings = settings
        self._aside = aside

    async def driver_version(self) -> str:
        return await self._checked("driver version", self._nvml.driver_version())

    async def gpus(self) -> tuple[GpuFacts, ...]:
        """The GPUs that answer and can be described."""
        found = await self._checked("GPUs", self._nvml.gpus())
        return tuple(facts for facts in found if self._is_usable(facts))

    async def wait_event(self, timeout_s: float) -> XidEvent | None:
        """The next error that the driver reports, or None if there is none in time."""
        return await self._checked("events", self._nvml.wait_event(timeout_s))

    async def _checked(self, what: str, answer: Awaitable[T]) -> T:
        try:
            checked = await answer
        except Outside:
            raise
        except Exception as error:
            self._aside.add(_ANSWER, what, error)
            raise Outside(f"the answer of NVML cannot be used: {error}") from error
        self._aside.forget(_ANSWER, what)
        return checked

    def _is_usable(self, facts: GpuFacts) -> bool:
        try:
            check_describable(facts, self._settings)
        except Exception as error:
            self._aside.add(_GPU, facts.uuid, error)
            return False
        self._aside.forget(_GPU, facts.uuid)
        return True


def check_describable(facts: GpuFacts, settings: NodeSettings) -> None:
    """Raises BadInput for a GPU with which the API server and the controller would refuse the whole Inventory."""
    inventory = build_inventory("node", "", (ObservedGpu(facts),), settings)
    read_inventory({"metadata": {"name": "node"}, "spec": write_spec(inventory)})


log = logging.getLogger(__name__)

ReportHealth = Callable[[str, str], Awaitable[None]]
"""Called with the UUID of a GPU and why it is unhealthy now; an empty reason means that it is healthy again."""


class GpuMonitor:
    """Raises nothing: a failure of NVML is a reason why GPUs are unhealthy."""

    def __init__(
        self,
        nvml: CheckedNvml,
        offers: NodeOfferStore,
        clock: Clock,
        *,
        poll_s: float,
        rules: Health,
        before: Inventory | None,
        report: ReportHealth,
    ) -> None:
        """`before` is what the node published last: until NVML answers, these GPUs are known and unhealthy."""
        self._nvml = nvml
        self._offers = offers
        self._clock = clock
        self._poll_s = poll_s
        self._health = HealthTracker(rules, known_facts(before.gpus) if before else ())
        self._driver = before.driver if before else ""
        self._report = report
        self._reported: dict[str, str] = {}

    async def run(self) -> None:
        while True:
            await self.reconcile()
            await self.listen()

    async def reconcile(self) -> None:
        """Ask NVML for the GPUs."""
        try:
            self._driver = await self._nvml.driver_version()
            self._health.record_listing(await self._nvml.gpus(), self._clock.monotonic())
        except Outside as error:
            self._health.record_outage(str(error))
        self._offers.looked_at = self._clock.wall()
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
        self._offers.update(driver=self._driver, observed=gpus)
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
