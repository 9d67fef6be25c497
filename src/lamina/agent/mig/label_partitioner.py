"""Keeps a node's GPUs partitioned as the configuration says that its label `nvidia.com/mig.config` names.

The label is compared with the GPUs at every look, so changes by a restart, a reboot or a person are reverted. The label
`nvidia.com/mig.config.state` shows the progress: pending, success or failed, and a failure's reason is in an event on
the node and in the log. Failed changes are repeated, because GPUs in use become idle. A node without the label is left
as it is; its MIG devices are still advertised. Where the configuration has a default, nodes get the label with it.
"""

import logging
from collections.abc import Mapping

from msgspec import structs

from lamina.agent.context import NodeContext
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.mig.apply import Users, is_partitioned, partition, pods_using, processes_using
from lamina.agent.mig.grant_partitioner import required_instances
from lamina.agent.mig.maker import MigMaker, instance_at
from lamina.agent.state.holdings import Instance, instance_of
from lamina.agent.state.observed import Observable, ObservedNode
from lamina.configuration import mig_parted
from lamina.configuration.mig_parted import CONFIG_MAP, CONFIG_MAP_KEY, Configs, MigTarget, SelectableGpu
from lamina.core.gpus import Mode
from lamina.core.mig_devices import NONE, MigDevice
from lamina.errors import BadInput, NotYet, Outside
from lamina.ports.kube import CONFIG_MAPS, NODES, NotFound
from lamina.ports.polling import FailureLog, poll

log = logging.getLogger(__name__)

LABEL = "nvidia.com/mig.config"
STATE = "nvidia.com/mig.config.state"
PENDING, SUCCESS, FAILED = "pending", "success", "failed"
NOT_APPLIED = "MigNotApplied"
_KIND = "MIG configuration"
"""The reason of the event with which a node says why a configuration failed."""
RETRY_S = 5.0
"""The pause after a failure, and how often the ConfigMap is read while the label is set."""


class _File:
    """The text of the ConfigMap. It is parsed once, because that takes seconds for the largest ones."""

    def __init__(self, text: str, namespace: str) -> None:
        self.text = text
        self._where = f"ConfigMap {namespace}/{CONFIG_MAP}, {CONFIG_MAP_KEY}"
        self._configs: Configs | BadInput | None = None

    def configs(self) -> Configs:
        """Raises BadInput, every time it is called."""
        if self._configs is None:
            try:
                self._configs = mig_parted.load(self.text, self._where)
            except BadInput as problem:
                self._configs = problem
        if isinstance(self._configs, BadInput):
            raise BadInput(str(self._configs)) from self._configs
        return self._configs


class LabelPartitioner:
    """Partitions the GPUs of one node and reports their MIG devices to the node's offer.

    A node that the configuration does not select is left alone. GPUs that the label does not cover may be partitioned
    for grants if the configuration allows it (`on_demand`); their devices are not advertised to kubelet.
    """

    def __init__(
        self,
        node: NodeContext,
        offers: NodeOfferStore,
        maker: MigMaker,
        observed: Observable[ObservedNode | None],
    ) -> None:
        self._node = node
        self._offers = offers
        self._maker = maker
        self._observed = observed
        self._file = _File("", node.kube.lamina_namespace)
        self._read_at = float("-inf")
        self._failed_at = float("-inf")
        self._name = ""
        self._problem = ""

    async def run(self) -> None:
        """Look forever. The first look waits for the Node object, and the first published inventory for that look."""
        version = -1
        while self._observed.value is None:
            version, _ = await self._observed.after(version)
        failures = FailureLog(log, "Cannot manage MIG devices: %s")
        await poll(self.reconcile, self._node.clock, every_s=self._node.settings.poll_s, failures=failures)

    async def reconcile(self) -> None:
        """Compare, partition what differs, and advertise what exists. Raises Outside."""
        observed = self._observed.value
        if observed is None:
            return
        selected = self._node.config.selects(observed.labels)
        name = observed.labels.get(LABEL, "") if selected else ""
        if name != self._name:
            self._name, self._failed_at, self._read_at = name, float("-inf"), float("-inf")
        now = self._node.clock.monotonic()
        if not name:
            self._offers.update(labelled=frozenset(), to_partition=frozenset())
            self._node.refusals.accept(_KIND)
        if name and now - self._failed_at >= RETRY_S:
            await self._apply(name, observed)
        if not name and STATE in observed.labels:
            await self._set_state(None, observed)
        if default := self._default(observed):
            await self._patch_label(LABEL, default, observed)
        await self.advertise()
        await self._report_problem(observed)
        await self._report_unoffered(observed)

    async def _apply(self, name: str, observed: ObservedNode) -> None:
        try:
            desired = await self._covered(name)
            if not await self._is_applied(desired):
                if self._failed_at == float("-inf"):  # a retry stays "failed" until it succeeds
                    await self._set_state(PENDING, observed)
                for uuid, target in desired.items():
                    async with self._maker.turn:
                        await partition(self._maker, uuid, target, self._users)
                log.info("Partitioned the GPUs of node %s as %s says", self._node.node, name)
        except Exception as error:
            self._failed_at = self._node.clock.monotonic()
            if isinstance(error, (NotYet, Outside)):
                log.warning("Cannot partition the GPUs as %s says: %s", name, error)
            else:
                self._node.aside.add(_KIND, name, error)
                self._node.refusals.refuse(_KIND, f"label {LABEL}={name}", str(error), self._node.clock.wall())
            await self._set_state(FAILED, observed)
            await self._event(observed, NOT_APPLIED, f"{LABEL}={name}: {error}")
            return
        self._failed_at = float("-inf")
        self._node.aside.forget(_KIND, name)
        self._node.refusals.accept(_KIND)
        await self._set_state(SUCCESS, observed)

    async def _covered(self, name: str) -> dict[str, MigTarget]:
        """The desired state of each GPU that the label covers. While that is not known it covers all of them."""
        try:
            desired = await self._desired(name)
        except Exception:
            self._offers.update(labelled=frozenset(self._offers.gpus))
            raise
        to_partition = frozenset(uuid for uuid, target in desired.items() if target.enabled)
        self._offers.update(labelled=frozenset(desired), to_partition=to_partition)
        for uuid in desired:
            self._maker.ownership.note_label(uuid, labelled=True)
        return desired

    async def _desired(self, name: str) -> dict[str, MigTarget]:
        now = self._node.clock.monotonic()
        if now - self._read_at >= RETRY_S:
            text, self._read_at = await self._read_config_map(), now
            if text != self._file.text:
                self._file = _File(text, self._node.kube.lamina_namespace)
        gpus = []
        for uuid, gpu in self._offers.gpus.items():
            card = await self._node.nvml.mig_card(uuid) if gpu.facts.mig_capable else None
            gpus.append(SelectableGpu(uuid, gpu.facts.index, gpu.facts.pci_device, card))
        return mig_parted.targets(name, self._file.configs(), gpus)

    async def _read_config_map(self) -> str:
        try:
            config_map = await self._node.kube.get(CONFIG_MAPS, CONFIG_MAP, namespace=self._node.kube.lamina_namespace)
        except NotFound:
            return ""
        return str((config_map.get("data") or {}).get(CONFIG_MAP_KEY, ""))

    async def _is_applied(self, desired: Mapping[str, MigTarget]) -> bool:
        facts = {each.uuid: each for each in await self._node.nvml.gpus()}
        for uuid, target in desired.items():
            if uuid not in facts:
                raise Outside(f"{uuid} does not answer NVML")
            if not is_partitioned(facts[uuid], await self._node.nvml.mig_instances(uuid), target):
                return False
        return True

    async def _set_state(self, state: str | None, observed: ObservedNode) -> None:
        """Set or remove the state label, if it is not right already."""
        newest = self._observed.value or observed
        if newest.labels.get(STATE) != state:
            await self._patch_label(STATE, state, observed)

    async def _patch_label(self, key: str, value: str | None, observed: ObservedNode) -> None:
        patch = {"metadata": {"uid": observed.uid, "labels": {key: value}}}
        await self._node.kube.patch(NODES, self._node.node, patch)

    def _default(self, observed: ObservedNode) -> str:
        """The configuration that a node without the label is to have; none where anyone else decides on its GPUs."""
        ours = self._node.config.selects(observed.labels) and LABEL not in observed.labels
        by_grants = Mode.MIG in self._offers.state.settings.modes
        by_hand = any(gpu.facts.mig_enabled for gpu in self._offers.gpus.values())
        free = ours and bool(self._capable) and not (by_grants or by_hand)
        return self._node.config.mig.default_configuration if free else ""

    async def _users(self) -> Users:
        """Who has a GPU by a grant, a GPU or MIG device as a native device, or uses either without both.

        An MPS daemon uses its GPU also while it has no clients. It stops, because the GPU is to be partitioned.
        """
        users = await pods_using(self._node, self._offers.resources)
        for gpu, daemon in self._offers.state.daemons.items():
            if daemon.made:
                users.setdefault(gpu, []).append("an MPS daemon")
        granted: dict[Instance, str] = {}
        for pod, grant in (await self._node.cluster.list_grants()).items():
            shares = [share for container in grant.containers for share in container.shares]
            granted |= {each: f"pod {pod}" for share in shares if (each := instance_of(share)) is not None}
            for gpu in {share.gpu for share in shares}:
                users.setdefault(gpu, []).append(f"pod {pod}")
        for bound in self._node.record.containers:
            granted |= dict.fromkeys(bound.instances, str(bound))
            for gpu in bound.gpus:
                users.setdefault(gpu, []).append(str(bound))
        existing = {
            each.uuid: instance_at(gpu, each)
            for gpu in self._capable
            for each in await self._node.nvml.mig_instances(gpu)
            if each.uuid
        }
        for uuid, instance in existing.items():
            if instance in granted:
                users.setdefault(uuid, []).append(granted[instance])
        running = await processes_using(self._node.nvml, [*self._offers.gpus, *existing])
        return running | {uuid: list(dict.fromkeys(names)) for uuid, names in users.items()}

    @property
    def _capable(self) -> list[str]:
        """The GPUs that support MIG, by UUID."""
        return [uuid for uuid, gpu in self._offers.gpus.items() if gpu.facts.mig_capable]

    async def advertise(self) -> None:
        """Report the existing MIG devices, except those of grants. A GPU that fails keeps those that it had.

        Raises Outside once all GPUs have had their turn.
        """
        devices: list[MigDevice] = []
        failure: Outside | None = None
        for gpu in self._capable:
            try:
                devices += await self._devices_of(gpu)
            except Exception as error:
                devices += [each for each in self._offers.state.mig_devices if each.gpu == gpu]
                if isinstance(error, Outside):
                    failure = failure or error
                else:
                    self._node.aside.add("MIG devices", gpu, error)
            else:
                self._node.aside.forget("MIG devices", gpu)
        self._offers.update(mig_devices=tuple(devices))
        if failure is not None:
            raise failure

    async def _devices_of(self, gpu: str) -> list[MigDevice]:
        partitionable = self._offers.partitionable
        instances = await self._node.nvml.mig_instances(gpu)
        if partitionable is None or gpu in partitionable:
            return []
        ownership, devices = self._maker.ownership, []
        made = {instance for instance in ownership.instances if instance.gpu not in ownership.labelled}
        granted = made | required_instances(self._node)
        for instance in instances:
            if instance.uuid and instance_at(gpu, instance) not in granted:
                profile = (await self._node.nvml.mig_card(gpu)).profile(instance.profile)
                if attributes := instance.attributes:
                    profile = structs.replace(profile, **attributes._asdict())
                devices.append(MigDevice(gpu, instance, profile))
        return devices

    async def _report_problem(self, observed: ObservedNode) -> None:
        """Report once why the MIG strategy advertises nothing."""
        before, self._problem = self._problem, self._offers.state.mig_problem
        if self._problem and self._problem != before:
            message = f"the MIG strategy single advertises no devices: {self._problem}"
            log.warning("%s", message)
            await self._event(observed, "MigNotOffered", message)

    async def _report_unoffered(self, observed: ObservedNode) -> None:
        """Report each GPU that is in MIG mode although nothing here uses that, or although pods have shares of it."""
        state = self._offers.state
        advertised = {device.gpu for device in state.mig_devices} if state.mig_strategy != NONE else set()
        used = advertised | (state.labelled or set()) | (self._offers.partitionable or set())
        for uuid, gpu in self._offers.gpus.items():
            kind, index = f"MIG mode of {uuid}", gpu.facts.index
            ours = state.selected and state.settings.offers(uuid, index)
            sharers = self._sharers(uuid)
            if not gpu.facts.mig_enabled or not (sharers or (ours and uuid not in used)):
                self._node.refusals.accept(kind)
                continue
            off = f"turn that off with nvidia-smi -i {index} -mig 0"
            reason = (
                f"it is in MIG mode, and programs in {sharers} find no GPU; {off}, or delete the pods"
                if sharers
                else f"it is in MIG mode and not offered; {off}, partition it by the label {LABEL}, or add mig to "
                "sharing.modes"
            )
            if self._node.refusals.refuse(kind, f"GPU {index} ({uuid})", reason, self._node.clock.wall()):
                await self._event(observed, "MigModeNotUsed", f"GPU {index} ({uuid}): {reason}")

    def _sharers(self, gpu: str) -> str:
        """The pods that have shares of the GPU's own memory, not MIG instances of it."""
        holders = [each.bound for each in self._node.record.allocations if each.bound is not None]
        return ", ".join(sorted({str(each) for each in holders if gpu in each.gpus and each.mode is not Mode.MIG}))

    async def _event(self, observed: ObservedNode, reason: str, message: str) -> None:
        node = {"metadata": {"name": self._node.node, "uid": observed.uid}}
        await self._node.events.record(NODES, node, reason, message, warning=True)
