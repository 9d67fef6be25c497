"""Keeps compatibility labels, annotations and resources of the node as desired, whatever changes or removes them.

Kubelet's restarts change them too. The current state is known from the watch on the node, so nothing is requested and
nothing written while it is right.
"""

import contextlib
import logging

from lamina.agent.compat.desired import desired_metadata, maintained_resources, metadata_patch, status_patch
from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.state.observed import Observable, ObservedNode
from lamina.core.nodes import kept_out
from lamina.dialects.metadata import NodeFacts
from lamina.errors import Outside
from lamina.ports.host import Host
from lamina.ports.kube import NODES
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)


class CompatReconciler:
    """For one node."""

    def __init__(
        self,
        node: NodeContext,
        offers: NodeOfferStore,
        observed: Observable[ObservedNode | None],
        host: Host,
    ) -> None:
        self._node = node
        self._config = node.config
        self._offers = offers
        self._observed = observed
        self._host = host
        self._cuda: tuple[int, int] | None = None

    @property
    def excluded(self) -> bool:
        """Whether the node's labels assign it to another system, so that no agent comes after this one."""
        return kept_out(self._observed.value.labels if self._observed.value else None)

    async def run(self) -> None:
        """Reconcile forever, and once more at the end if everything has to be removed."""
        failures = FailureLog(log, "Cannot write compatibility labels, annotations or resources of the node: %s")
        try:
            await poll(self.reconcile, self._node.clock, every_s=self._node.settings.poll_s, failures=failures)
        finally:
            if self.excluded:
                with contextlib.suppress(Outside):
                    await self.reconcile()

    async def reconcile(self) -> None:
        """Write what differs. Raises Outside."""
        inventory, observed = self._offers.inventory.value, self._observed.value
        if inventory is None or observed is None or not self._offers.driver:
            return
        if self._cuda is None:
            self._cuda = await self._node.nvml.cuda_version()
        selected = self._config.selects(observed.labels) and not self.excluded
        state, applied = self._offers.state, self._node.nvidia
        facts = NodeFacts(
            inventory=inventory,
            gpus=tuple(gpu.facts for gpu in self._offers.gpus.values()) if selected else (),
            mig_strategy=state.mig_strategy,
            mig_devices=state.mig_devices,
            sharing=state.sharing,
            cuda=self._cuda,
            machine=self._host.machine_type(applied.machine_type_file),
            timestamps=applied.label_timestamps,
        )
        desired = desired_metadata(facts, self._config)
        labelling = self._config.compatibility.labels
        metadata = metadata_patch(desired, observed, labelling=labelling, now=self._node.clock.wall())
        if metadata is not None:
            await self._node.kube.patch(NODES, self._node.node, metadata)
        status = status_patch(desired, observed, maintained_resources(self._config, observed.capacity))
        if status is not None:
            await self._node.kube.patch(NODES, self._node.node, status, subresource="status")
        if metadata or status:
            log.info("Updated compatibility labels, annotations and resources of node %s", self._node.node)
