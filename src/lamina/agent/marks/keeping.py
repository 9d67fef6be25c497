"""Hold the node to its marks: whoever changes or removes one sees it come back, kubelet's restarts included.

What is there is known from the watch on the node, so nothing is asked and nothing written while all is right.
"""

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

from lamina.agent.current import Current
from lamina.agent.marks import amounts
from lamina.agent.marks.features import System
from lamina.agent.marks.mig_features import Mig
from lamina.agent.marks.wanted import Seen, metadata_patch, status_patch, wanted
from lamina.agent.offer import Offer
from lamina.dialects.config import Config
from lamina.dialects.nvidia import Gfd
from lamina.errors import Outside
from lamina.model.nodes import kept_out
from lamina.ports.clock import Clock
from lamina.ports.kube import NODES, Kube
from lamina.ports.nvml import Nvml

log = logging.getLogger(__name__)

_MACHINE = "/sys/class/dmi/id/product_name"


class Keeper:
    """Keeps the marks of one node."""

    def __init__(
        self,
        *,
        kube: Kube,
        node: str,
        config: Config,
        offer: Offer,
        nvml: Nvml,
        now: Callable[[], float],
        gfd: Gfd = Gfd(),  # noqa: B008
    ) -> None:
        """`now` is Unix time. `gfd` are the settings of NVIDIA's GPU feature discovery."""
        self._kube = kube
        self._node = node
        self._config = config
        self._offer = offer
        self.seen: Current[Seen | None] = Current(None)
        """The node as the watch told it last."""
        self._nvml = nvml
        self._now = now
        self._machine = Path(gfd.machine_type_file or _MACHINE)
        self._stamped = not gfd.no_timestamp
        self._cuda: tuple[int, int] | None = None

    @property
    def leaves(self) -> bool:
        """Whether the node has become somebody else's, so that no agent comes after this one."""
        return kept_out(self.seen.value.labels if self.seen.value else None)

    async def keep(self) -> None:
        """Write what differs. Raises Outside."""
        inventory, seen = self._offer.inventory.value, self.seen.value
        if inventory is None or seen is None or not self._offer.driver:
            return
        if self._cuda is None:
            self._cuda = await self._nvml.cuda_version()
        system = System(self._offer.driver, self._cuda, self._machine_name())
        selected = self._config.selects(seen.labels) and not self.leaves
        facts = tuple(state.facts for state in self._offer.gpus.values()) if selected else ()
        mig = Mig(self._offer.mig_strategy, self._offer.mig_devices, self._offer.sharing)
        marks = wanted(inventory, facts, system, self._config, mig)
        metadata = metadata_patch(
            marks, seen, labelling=self._config.node.labels, now=self._now(), stamped=self._stamped
        )
        if metadata is not None:
            await self._kube.patch(NODES, self._node, metadata)
        status = status_patch(marks, seen, amounts.kept(self._config, seen.capacity))
        if status is not None:
            await self._kube.patch(NODES, self._node, status, subresource="status")
        if metadata or status:
            log.info("Put the marks of node %s right", self._node)

    def _machine_name(self) -> str:
        try:
            return self._machine.read_text().strip()
        except OSError:
            return ""


async def keeping(keeper: Keeper, clock: Clock, *, poll_s: float) -> None:
    """Keep for ever, and once more at the end where the marks are to go. What cannot be written is tried again."""
    failed = ""
    try:
        while True:
            try:
                await keeper.keep()
                failed = ""
            except Outside as error:
                if str(error) != failed:
                    log.warning("The marks of the node could not be written: %s", error)
                failed = str(error)
            await clock.sleep(poll_s)
    finally:
        if keeper.leaves:
            with contextlib.suppress(Outside):
                await keeper.keep()
