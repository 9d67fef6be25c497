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
from lamina.agent.mig.cutting import cut, is_cut
from lamina.agent.mig.maker import Maker, at
from lamina.agent.mig.offering import MigDevice
from lamina.agent.mig.on_demand import needed_by
from lamina.agent.mig.users import Users, holders, processes
from lamina.agent.offer import Offer
from lamina.agent.plan import instance_of
from lamina.agent.record import Instance, Record
from lamina.dialects import mig_parted
from lamina.dialects.config import CONFIG_MAP_NAMESPACE, Config
from lamina.dialects.mig_parted import CONFIG_MAP, CONFIG_MAP_KEY, CutGpu, Wish
from lamina.errors import LaminaError, Outside
from lamina.ports.clock import Clock
from lamina.ports.kube import CONFIG_MAPS, NODES, EventRecorder, Kube, NotFound
from lamina.ports.kubelet.podresources import PodResources
from lamina.ports.nvml import MigInstance

log = logging.getLogger(__name__)

LABEL = "nvidia.com/mig.config"
STATE = "nvidia.com/mig.config.state"
PENDING, SUCCESS, FAILED = "pending", "success", "failed"
AGAIN_S = 5.0
"""After a failure; and how often the file is read while a name is in force."""


class Cutter:
    """One node's GPUs. `offer` knows them and is told of their devices, `seen` is the node as it is now.

    A node that the configuration does not select is left alone. GPUs that the label does not have may be cut for grants
    where the configuration says so (`on_demand`); their devices are not offered to kubelet.
    """

    def __init__(
        self,
        *,
        node: str,
        config: Config,
        kube: Kube,
        maker: Maker,
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
        self._maker = maker
        self._nvml = maker.nvml
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

    async def known(self) -> None:
        """Wait until the node was seen. What is published waits for the first look, so that one must not be late."""
        version = -1
        while self._seen.value is None:
            version, _ = await self._seen.after(version)

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
        if not name:
            self._offer.govern(frozenset())
        if name and now - self._failed_at >= AGAIN_S:
            await self._apply(name, seen)
        if not name and STATE in seen.labels:
            await self._tell(None, seen)
        await self.observe()
        await self._explain(seen)

    async def _apply(self, name: str, seen: Seen) -> None:
        try:
            wanted = await self._governed(name)
            if not await self._is_cut(wanted):
                if self._failed_at == float("-inf"):  # who tries again is not heard of until it is done
                    await self._tell(PENDING, seen)
                for uuid, wish in wanted.items():
                    async with self._maker.turn:
                        await cut(self._maker, uuid, wish, self._users)
                log.info("The GPUs of node %s are cut as %s says", self._node, name)
        except LaminaError as error:
            self._failed_at = self._clock.monotonic()
            log.warning("The GPUs are not cut as %s says: %s", name, error)
            await self._tell(FAILED, seen)
            node = {"metadata": {"name": self._node, "uid": seen.uid}}
            await self._events.record(NODES, node, "MigNotApplied", f"{LABEL}={name}: {error}", warning=True)
            return
        self._failed_at = float("-inf")
        await self._tell(SUCCESS, seen)

    async def _governed(self, name: str) -> dict[str, Wish]:
        """What the label means for each GPU that it has. While that is not clear it has all of them."""
        try:
            wanted = await self._wanted(name)
        except LaminaError:
            self._offer.govern(self._offer.gpus.keys())
            raise
        self._offer.govern(wanted.keys())
        for uuid in wanted:
            self._maker.made.note_label(uuid, labelled=True)
        return wanted

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
        found = await holders(self._record, self._pod_resources, self._offer.resources)
        granted: dict[Instance, str] = {}
        for pod, grant in (await self._cluster.grants_here()).items():
            shares = [share for container in grant.containers for share in container.shares]
            granted |= {each: f"pod {pod}" for share in shares if (each := instance_of(share)) is not None}
            for gpu in {share.gpu for share in shares}:
                found.setdefault(gpu, []).append(f"pod {pod}")
        for bound in [each.bound for each in self._record.allocations if each.bound is not None]:
            granted |= dict.fromkeys(bound.instances, f"pod {bound.namespace}/{bound.pod}")
        there = {each.uuid: at(gpu, each) for gpu, each in await self._instances() if each.uuid}
        for uuid, instance in there.items():
            if instance in granted:
                found.setdefault(uuid, []).append(granted[instance])
        running = await processes(self._nvml, [*self._offer.gpus, *there])
        return running | found

    async def _instances(self) -> list[tuple[str, MigInstance]]:
        """The instances of the node's GPUs, with the UUID of each one's GPU."""
        capable = [uuid for uuid, state in self._offer.gpus.items() if state.facts.mig_capable]
        return [(uuid, instance) for uuid in capable for instance in await self._nvml.mig_instances(uuid)]

    async def observe(self) -> None:
        """Tell the offer which devices there are. Raises Outside."""
        found = []
        cuttable = self._offer.cuttable
        by_grant = self._offer.gpus.keys() if cuttable is None else cuttable
        made = {each for each in self._maker.made.instances if each.gpu not in self._maker.made.labelled}
        granted = made | needed_by(self._record)
        for gpu, instance in await self._instances():
            if instance.uuid and gpu not in by_grant and at(gpu, instance) not in granted:
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
    await cutter.known()
    while True:
        try:
            await cutter.look()
            failed = ""
        except Outside as error:
            if str(error) != failed:
                log.warning("MIG cannot be looked after: %s", error)
            failed = str(error)
        await clock.sleep(poll_s)
