"""Hold a node's GPUs to the configuration that its label `nvidia.com/mig.config` names.

The label is compared with the GPUs at every look, so what a restart, a reboot or somebody else changed comes back. How
far it is stands in `nvidia.com/mig.config.state`: pending, success or failed, with the reason of a failure in an event
on the node and in the log. What failed is tried again, because a busy GPU becomes idle. A node without the label is
left as it is; its MIG devices are offered all the same.
"""

import logging
from collections.abc import Callable, Mapping

from lamina.agent.cluster import Cluster
from lamina.agent.current import Current
from lamina.agent.health import GpuState
from lamina.agent.marks.wanted import Seen
from lamina.agent.mig.cutting import Users, cut, is_cut
from lamina.agent.mig.offering import resource, resources
from lamina.agent.mig.serving import Offered
from lamina.agent.tickets import Ticket
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
    """One node's GPUs. `gpus` and `seen` are the node's as they are now, `offered` is what becomes of it.

    A node that the configuration does not select is left alone, and its devices are offered to nobody.
    """

    def __init__(
        self,
        *,
        node: str,
        config: Config,
        strategy: str,
        kube: Kube,
        nvml: Nvml,
        cluster: Cluster,
        pod_resources: PodResources,
        gpus: Callable[[], Mapping[str, GpuState]],
        seen: Current[Seen | None],
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._node = node
        self._config = config
        self._strategy = strategy
        self._kube = kube
        self._nvml = nvml
        self._cluster = cluster
        self._pod_resources = pod_resources
        self._gpus = gpus
        self._seen = seen
        self._events = events
        self._clock = clock
        self._text = ""
        self._read_at = float("-inf")
        self._failed_at = float("-inf")
        self._named = ""
        self.offered: Current[Offered | None] = Current(None)
        """None until NVML was asked."""

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
        await self._offer(self._strategy if selected else "none")

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
        for uuid, state in self._gpus().items():
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
        """Who has a GPU by a grant, a MIG device by kubelet's choice, or either without any of that."""
        found: dict[str, list[str]] = {}
        for pod, grant in (await self._cluster.grants_here()).items():
            for gpu in {share.gpu for container in grant.containers for share in container.shares}:
                found.setdefault(gpu, []).append(f"pod {pod}")
        instances = await self._instances()
        for holder in await self._pod_resources.holders({resource(each.profile) for each in instances}):
            for uuid in holder.devices:
                found.setdefault(uuid, []).append(f"pod {holder.namespace}/{holder.pod}")
        for uuid in (*self._gpus(), *(each.uuid for each in instances if each.uuid)):
            if uuid not in found and (processes := await self._nvml.processes(uuid)):
                found[uuid] = [f"process {process.pid}" for process in processes]
        return found

    async def _instances(self) -> tuple[MigInstance, ...]:
        capable = [uuid for uuid, state in self._gpus().items() if state.facts.mig_capable]
        return tuple([instance for uuid in capable for instance in await self._nvml.mig_instances(uuid)])

    async def _offer(self, strategy: str) -> None:
        healthy: dict[str, bool] = {}
        instances: list[MigInstance] = []
        for uuid, state in self._gpus().items():
            if state.facts.mig_capable:
                there = await self._nvml.mig_instances(uuid)
                instances += there
                healthy |= {instance.uuid: state.healthy for instance in there}
        named = resources(strategy, instances)
        self.offered.set({name: tuple(Ticket(uuid, healthy[uuid]) for uuid in uuids) for name, uuids in named.items()})


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
