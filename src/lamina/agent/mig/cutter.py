"""Hold a node's GPUs to the configuration that its label `nvidia.com/mig.config` names.

The label is compared with the GPUs at every look, so what a restart, a reboot or somebody else changed comes back. How
far it is stands in `nvidia.com/mig.config.state`: pending, success or failed, with the reason of a failure in an event
on the node and in the log. What failed is tried again, because a busy GPU becomes idle. A node without the label is
left as it is; its MIG devices are offered all the same.
"""

import logging
from collections.abc import Mapping

from msgspec import structs

from lamina.agent.cluster import Cluster
from lamina.agent.current import Current
from lamina.agent.marks.wanted import Seen
from lamina.agent.mig.cutting import Users, cut, is_cut
from lamina.agent.mig.offering import MigDevice
from lamina.agent.offer import Offer
from lamina.agent.plain import unit_of
from lamina.agent.record import Record
from lamina.dialects import mig_parted
from lamina.dialects.config import CONFIG_MAP_NAMESPACE, Config
from lamina.dialects.mig_parted import CONFIG_MAP, CONFIG_MAP_KEY, CutGpu, Wish
from lamina.errors import LaminaError, Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import CONFIG_MAPS, NODES, EventRecorder, Kube, NotFound
from lamina.ports.kubelet.podresources import PodResources
from lamina.ports.nvml import MigInstance, Nvml

log = logging.getLogger(__name__)

LABEL = "nvidia.com/mig.config"
STATE = "nvidia.com/mig.config.state"
PENDING, SUCCESS, FAILED = "pending", "success", "failed"
AGAIN_S = 5.0
"""After a failure; and how often the file is read while a name is in force."""


class Cutter:
    """One node's GPUs. `offer` knows them and is told of their devices, `seen` is the node as it is now.

    A node that the configuration does not select is left alone.
    """

    def __init__(
        self,
        *,
        node: str,
        config: Config,
        kube: Kube,
        nvml: Nvml,
        cluster: Cluster,
        pod_resources: PodResources,
        record: Record,
        offer: Offer,
        seen: Current[Seen | None],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._node = node
        self._config = config
        self._kube = kube
        self._nvml = nvml
        self._cluster = cluster
        self._pod_resources = pod_resources
        self._record = record
        self._offer = offer
        self._seen = seen
        self._events = events
        self._clock = clock
        self._text = ""
        self._read_at = float("-inf")
        self._failed_at = float("-inf")
        self._named = ""
        self._problem = ""

    async def look(self) -> None:
        """Compare, cut what differs, and offer what is there. Raises Outside."""
        seen = self._seen.value
        if seen is None:
            return
        selected = self._config.selects(seen.labels)
        name = seen.labels.get(LABEL, "") if selected else ""
        if name != self._named:
            self._named, self._failed_at, self._read_at = name, float("-inf"), float("-inf")
        now = self._clock.monotonic()
        if name and now - self._failed_at >= AGAIN_S:
            await self._apply(name, seen)
        if not name and STATE in seen.labels:
            await self._tell(None, seen)
        await self.observe()
        await self._explain(seen)

    async def _apply(self, name: str, seen: Seen) -> None:
        try:
            wanted = await self._wanted(name)
            if not await self._is_cut(wanted):
                await self._tell(PENDING, seen)
                for uuid, wish in wanted.items():
                    await cut(self._nvml, uuid, wish, self._users)
                log.info("The GPUs of node %s are cut as %s says", self._node, name)
        except LaminaError as error:
            self._failed_at = self._clock.monotonic()
            log.warning("The GPUs are not cut as %s says: %s", name, error)
            await self._tell(FAILED, seen)
            node = {"metadata": {"name": self._node, "uid": seen.uid}}
            await self._events.record(NODES, node, "MigNotApplied", f"{LABEL}={name}: {error}", warning=True)
            return
        await self._tell(SUCCESS, seen)

    async def _wanted(self, name: str) -> dict[str, Wish]:
        now = self._clock.monotonic()
        if now - self._read_at >= AGAIN_S:
            self._text, self._read_at = await self._file(), now
        where = f"ConfigMap {CONFIG_MAP_NAMESPACE}/{CONFIG_MAP}, {CONFIG_MAP_KEY}"
        gpus = []
        for uuid, state in self._offer.gpus.items():
            card = await self._nvml.mig_card(uuid) if state.facts.mig_capable else None
            gpus.append(CutGpu(uuid, state.facts.index, state.facts.pci_device, card))
        return mig_parted.wishes(name, mig_parted.load(self._text, where), gpus)

    async def _file(self) -> str:
        try:
            found = await self._kube.get(CONFIG_MAPS, CONFIG_MAP, namespace=CONFIG_MAP_NAMESPACE)
        except NotFound:
            return ""
        return str((found.get("data") or {}).get(CONFIG_MAP_KEY, ""))

    async def _is_cut(self, wanted: Mapping[str, Wish]) -> bool:
        facts = {each.uuid: each for each in await self._nvml.gpus()}
        for uuid, wish in wanted.items():
            if uuid not in facts:
                raise Outside(f"{uuid} does not answer")
            if not is_cut(facts[uuid], await self._nvml.mig_instances(uuid), wish):
                return False
        return True

    async def _tell(self, state: str | None, seen: Seen) -> None:
        """Set the state's label, or remove it, if it is not that already."""
        now = self._seen.value or seen
        if now.labels.get(STATE) != state:
            await self._kube.patch(NODES, self._node, {"metadata": {"uid": seen.uid, "labels": {STATE: state}}})

    async def _users(self) -> Users:
        """Who has a GPU by a grant, a GPU or device by kubelet's choice, or either without any of that."""
        found: dict[str, list[str]] = {}
        for pod, grant in (await self._cluster.grants_here()).items():
            for gpu in {share.gpu for container in grant.containers for share in container.shares}:
                found.setdefault(gpu, []).append(f"pod {pod}")
        for each in self._record.allocations:
            for unit in {unit_of(device) for device in each.tickets}:
                pod = f"pod {each.bound.namespace}/{each.bound.pod}" if each.bound else "a container that is starting"
                found.setdefault(unit, []).append(pod)
        for holder in await self._pod_resources.holders(self._resources()):
            for unit in {unit_of(device) for device in holder.devices}:
                found.setdefault(unit, []).append(f"pod {holder.namespace}/{holder.pod}")
        there = [each.uuid for _, each in await self._instances() if each.uuid]
        for uuid in (*self._offer.gpus, *there):
            if uuid not in found and (processes := await self._nvml.processes(uuid)):
                found[uuid] = [f"process {process.pid}" for process in processes]
        return found

    def _resources(self) -> set[str]:
        """Those by which kubelet gives out GPUs and MIG devices."""
        plain = (*self._offer.devices, *self._offer.cut.value)
        return {kind.resource for kind in self._offer.tickets} | {kind.resource for kind in plain}

    async def _instances(self) -> list[tuple[str, MigInstance]]:
        """The instances of the node's GPUs, with the UUID of each one's GPU."""
        capable = [uuid for uuid, state in self._offer.gpus.items() if state.facts.mig_capable]
        return [(uuid, instance) for uuid in capable for instance in await self._nvml.mig_instances(uuid)]

    async def observe(self) -> None:
        """Tell the offer which devices there are. Raises Outside."""
        found = []
        for gpu, instance in await self._instances():
            if instance.uuid:
                profile = (await self._nvml.mig_card(gpu)).profile(instance.profile)
                if told := instance.attributes:
                    profile = structs.replace(profile, **told._asdict())
                found.append(MigDevice(gpu, instance, profile))
        self._offer.divided(tuple(found))

    async def _explain(self, seen: Seen) -> None:
        """Say on the node why the strategy for MIG offers nothing, once."""
        problem, self._problem = self._problem, self._offer.problem
        if self._problem and self._problem != problem:
            text = f"the MIG strategy single offers nothing: {self._problem}"
            log.warning("%s", text)
            node = {"metadata": {"name": self._node, "uid": seen.uid}}
            await self._events.record(NODES, node, "MigNotOffered", text, warning=True)


async def cutting(cutter: Cutter, clock: Clock, *, poll_s: float) -> None:
    """Look for ever."""
    failed = ""
    while True:
        try:
            await cutter.look()
            failed = ""
        except Outside as error:
            if str(error) != failed:
                log.warning("MIG cannot be looked after: %s", error)
            failed = str(error)
        await clock.sleep(poll_s)
