"""Keeps compatibility labels, annotations and resources of the node as desired, whatever changes or removes them.

Kubelet's restarts change them too. The current state is known from the watch on the node, so nothing is requested and
nothing written while it is right.

The node gets capacities of the resources that pods request next to tickets, so that it has every name that a pod can
have. Lamina does not decide with them, and kube-scheduler's filters ignore them, since the extender manages them. But

- kube-scheduler from 1.32 on retries a pod that found no node when a node changes, and only if that node could hold all
  that the pod requests, including resources that an extender manages;
- kube-scheduler from 1.36 on refuses a node that does not list one of a pod's resources, if a DeviceClass could serve
  another one;
- kubelet compares the node's capacities with what its pods request, when it admits a pod and when it restarts. It skips
  names that the node does not have, but before 1.31 not those of init containers.

So every name has an amount. Sums of memory and compute are for people and tools that read allocatable. They say what
the node has, and do not shrink while a GPU is unhealthy or cordoned. All other names have plenty, so that kubelet
refuses nothing that was granted, however GPUs or settings of the node have changed since.
"""

import contextlib
import logging
from collections.abc import Mapping, Set
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.state.observed import Observable, ObservedNode
from lamina.configuration import DEFAULT, Config
from lamina.core.gpus import Inventory
from lamina.core.nodes import kept_out
from lamina.dialects import resource_names
from lamina.dialects.metadata import NodeFacts
from lamina.dialects.registry import labels_of_others, names_with_sums, node_annotations, node_metadata, owns_label
from lamina.errors import Outside
from lamina.ports.host import Host
from lamina.ports.kube import NODES, Object
from lamina.ports.polling import FailureLog, poll

PLENTY = 2**31 - 1
"""More than the pods of a node can hold of anything, in any unit."""
_UNITS = ("", "k", "M", "G", "T", "P", "E")


def desired_amounts(inventory: Inventory, config: Config) -> dict[str, int]:
    """The amount of each resource; none if no GPU is shared by grants."""
    gpus = [gpu for gpu in inventory.gpus if not gpu.native_resource]
    memory, cores = sum(gpu.capacity_mib for gpu in gpus), sum(gpu.cores_capacity for gpu in gpus)
    if not gpus:
        return {}
    sums = dict.fromkeys(_names(config), PLENTY)
    for names in names_with_sums(config, config):
        sums |= {names.memory: memory // names.memory_unit_mib, names.cores: cores}
    return {name: amount for name, amount in sums.items() if name in _names(config)}


def maintained_resources(config: Config, present: Mapping[str, str]) -> frozenset[str]:
    """The resources of a node with the amounts `present` that Lamina maintains, whether or not they are desired now.

    A resource that has never been a sum is Lamina's only if the node has plenty or none of it. Any other amount was
    written by another system, and stays.
    """
    earlier = (*names_with_sums(DEFAULT, config), *names_with_sums(config, config))
    ours = {name for names in earlier for name in (names.memory, names.cores)}
    plenty = (str(PLENTY), "0")
    return frozenset(name for name in _names(config) if name in ours or present.get(name) in plenty)


def format_quantity(amount: int) -> str:
    """The amount in the API server's canonical form: 2000 is 2k."""
    power = 0
    while amount and amount % 1000 == 0:
        amount, power = amount // 1000, power + 1
    return f"{amount}{_UNITS[power]}"


def _names(config: Config) -> frozenset[str]:
    """Every resource that is not a ticket."""
    return frozenset(name for names in resource_names(config) for name in names.ignored_by_scheduler)


class CompatMetadata(Struct, frozen=True, kw_only=True):
    """Labels, annotations and extended resources of a node."""

    labels: Mapping[str, str] = {}
    timestamps: Set[str] = frozenset()
    """Further labels, which have the Unix time of the last change of labels."""
    annotations: Mapping[str, str] = {}
    amounts: Mapping[str, int] = {}


def desired_metadata(node: NodeFacts, config: Config) -> CompatMetadata:
    """The metadata of a node; one that offers nothing has none.

    Partitioned GPUs are not in the inventory, but labels describe them like the others.
    """
    inventory, settings = node.inventory, config.for_node(node.inventory.node)
    offered = {gpu.uuid for gpu in inventory.gpus}
    partitioned = {gpu.uuid for gpu in node.gpus if gpu.mig_enabled and settings.offers(gpu.uuid, gpu.index)}
    described = tuple(gpu for gpu in node.gpus if gpu.uuid in offered | partitioned)
    if not described:
        return CompatMetadata()
    metadata = node_metadata(replace(node, gpus=described), config)
    return CompatMetadata(
        labels=metadata.labels,
        timestamps=metadata.timestamps,
        annotations=metadata.annotations,
        amounts=desired_amounts(inventory, config) if offered else {},
    )


def metadata_patch(desired: CompatMetadata, observed: ObservedNode, *, labelling: bool, now: float) -> Object | None:
    """The merge patch that makes labels and annotations as desired; None if they are.

    Labels that other programs write are left alone, and without `labelling` all labels are.
    """
    labels = _changed_labels(desired, observed, now) if labelling else {}
    annotations = _difference(desired.annotations, observed.annotations, node_annotations())
    changed = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
    return {"metadata": {"uid": observed.uid, **changed}} if changed else None


def _changed_labels(desired: CompatMetadata, observed: ObservedNode, now: float) -> dict[str, Any]:
    """The labels to set, and None for each to remove. Only a change of others changes a timestamp."""
    others = labels_of_others(observed.annotations)
    ours = {key for key in {*observed.labels, *desired.labels, *desired.timestamps} if owns_label(key)} - others
    labels = {key: value for key, value in desired.labels.items() if key in ours}
    changed = _difference(labels, observed.labels, ours - desired.timestamps)
    stamped = {key for key in desired.timestamps & ours if changed or key not in observed.labels}
    return changed | dict.fromkeys(stamped, str(int(now)))


def status_patch(desired: CompatMetadata, observed: ObservedNode, names: Set[str]) -> Object | None:
    """The merge patch that makes the resources `names` as desired; None if they are."""
    texts = {name: format_quantity(amount) for name, amount in desired.amounts.items()}
    status = {
        "capacity": _difference(texts, observed.capacity, names),
        "allocatable": _difference(texts, observed.allocatable, names),
    }
    changed = {key: value for key, value in status.items() if value}
    return {"status": changed} if changed else None


def _difference(want: Mapping[str, str], have: Mapping[str, str], ours: Set[str]) -> dict[str, Any]:
    """The values to set, and None for each of `ours` to remove."""
    changed: dict[str, Any] = {key: value for key, value in want.items() if have.get(key) != value}
    return changed | dict.fromkeys((ours & have.keys()) - want.keys())


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
