"""A node with every door faked but the disk: what the tests of prepare, release and reconcile stand on."""

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from msgspec import structs

from lamina.agent.cleanup.leftovers import reconcile
from lamina.agent.cleanup.pod_watch import PodWatch
from lamina.agent.cleanup.release import Releaser
from lamina.agent.cleanup.survivors import PodProcesses, SurvivorPublisher
from lamina.agent.containers.cdi import file_name
from lamina.agent.containers.paths import PRELOAD, FacadeLibraries, HostPaths, write_limits
from lamina.agent.context import NodeContext
from lamina.agent.inventory.builder import OnDemandInstances
from lamina.agent.inventory.offer_store import NodeOfferStore
from lamina.agent.inventory.reducer import OfferState
from lamina.agent.inventory.tickets import ticket_kinds
from lamina.agent.inventory.usage import DevicesInUse, devices_in_use
from lamina.agent.limits.container_resizer import ContainerResizer
from lamina.agent.limits.driver_reports import ProcessOwners
from lamina.agent.mig.grant_partitioner import GrantPartitioner
from lamina.agent.mig.maker import MigMaker, Ownership
from lamina.agent.mps.daemons import DaemonSupervisor, ReportDaemon, SharedGpus
from lamina.agent.mps.lifecycle import DaemonJournal, DaemonLifecycle
from lamina.agent.mps.sharing import GrantClients
from lamina.agent.prepare.plan import WriteLimits
from lamina.agent.prepare.preparers import TicketPreparer
from lamina.agent.prepare.steps import PreparationSteps
from lamina.agent.resource_claims.dra_devices import Doors
from lamina.agent.state.cluster import ClusterClient
from lamina.agent.state.gpu_health import ObservedGpu
from lamina.agent.state.observed import AppliedConfig, PodOwners, Refusals
from lamina.agent.state.record import Record
from lamina.agent.state.settings import AgentSettings
from lamina.configuration import DEFAULT
from lamina.core.gpus import MigInstance, Mode
from lamina.core.grants import ComputePolicy, ContainerGrant, Grant, Share, grant_name
from lamina.core.mps import MpsDaemon
from lamina.core.objects import write_spec
from lamina.core.survivors import Survivor
from lamina.ports.clock import FakeClock
from lamina.ports.files import Files
from lamina.ports.host import FakeHost
from lamina.ports.kube import GRANTS, PODS, EventRecorder
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kubelet.allocations import CHECKPOINT
from lamina.ports.kubelet.fake import FakePodResources
from lamina.ports.mps import FakeMps
from lamina.ports.nvml import FakeNvml, GpuFacts
from lamina.ports.nvml.fake import fake_gpus
from lamina.ports.set_aside import SetAside
from tests.worlds.deaths import Died, Life, mortal

RESOURCE = "nvidia.com/gpu"
KIND, VGPU, MEMORY, *_ = ticket_kinds(DEFAULT)
FACTS = fake_gpus(4)
GPU = [facts.uuid for facts in FACTS]


def share(
    gpu: int = 0,
    memory: int = 1000,
    *,
    cores: int = 0,
    policy: ComputePolicy = ComputePolicy.NONE,
    mode: Mode = Mode.QUOTA,
    mig: MigInstance | None = None,
) -> Share:
    return Share(gpu=GPU[gpu], memory_mib=memory, cores=cores, compute_policy=policy, mode=mode, mig=mig)


def container(name: str, *shares: Share, init: bool = False, sidecar: bool = False) -> ContainerGrant:
    return ContainerGrant(name=name, shares=shares or (share(),), init=init, sidecar=sidecar)


def node_offer(name: str = "node-1", in_use: Callable[[], DevicesInUse] = DevicesInUse, **state: Any) -> NodeOfferStore:
    """What a node of Lamina's offers by the default configuration; `state` has other fields of OfferState."""
    fields = {"node": name, "settings": DEFAULT.for_node(name), "selected": True} | state
    return NodeOfferStore(OfferState(**fields), in_use)


def pod_watch(node: "Node", owners: PodOwners | None = None, doors: Doors | None = None) -> PodWatch:
    """The watch of the node's pods."""
    doors = doors or Doors(node.context, node_offer(node.name))
    return PodWatch(node.context, node.survivors, node.sizes, owners or PodOwners(), doors)


def fake_context(root: Path, name: str = "node-1", **changes: Any) -> NodeContext:
    """What parts of an agent work with, with fakes for all that `changes` does not name. Makes nothing on the disk."""
    kube, clock, files = changes.get("kube") or FakeKube(), changes.get("clock") or FakeClock(), Files()
    aside = SetAside(logging.getLogger("lamina.agent"))
    fakes: dict[str, Any] = {
        "settings": AgentSettings(node=name, state_dir=root, kubelet_dir=root / "kubelet"),
        "config": DEFAULT,
        "nvidia": AppliedConfig(),
        "clock": clock,
        "files": files,
        "kube": kube,
        "nvml": FakeNvml(FACTS),
        "events": EventRecorder(kube, "lamina-agent", now=clock.wall),
        "cluster": ClusterClient(kube, name, aside),
        "pod_resources": FakePodResources(),
        "paths": HostPaths(
            root / "containers", root / "cdi", root / "driver", FacadeLibraries(root / "lib" / "1", "1")
        ),
        "record": Record(root / "record.json", files),
        "aside": aside,
        "refusals": Refusals(aside),
    }
    return NodeContext(**fakes | changes)


async def unreported(daemon: MpsDaemon) -> None:
    pass


class Node:
    """`kube` and `kubelet` are the fakes; `node_name` is where pods are bound unless a test says otherwise."""

    name = "node-1"

    def __init__(self, root: Path, files: Files | None = None, facts: Sequence[GpuFacts] = FACTS) -> None:
        self.root = root
        self.kube = FakeKube()
        self.kubelet = FakePodResources()
        self.clock = FakeClock()
        self.nvml = FakeNvml(facts)
        self.host = FakeHost()
        self.mps = FakeMps()
        self.published: list[tuple[Survivor, ...]] = []
        """What was published of survivors."""
        self.gpus = {each.uuid: ObservedGpu(each) for each in facts}
        self.partitionable: Set[str] | None = {each.uuid for each in facts if each.mig_capable}
        self.instances = OnDemandInstances()
        self.places = HostPaths(root / "containers", root / "cdi", root / "driver", libraries(root))
        self._disk = files or Files()
        self.start()

    def start(self, life: Life | None = None) -> None:
        """Start again with what is on the disk, as a restarted agent does, which may die."""
        life = life or Life()
        self.files, nvml, self._mps = mortal(self._disk, life), mortal(self.nvml, life), mortal(self.mps, life)
        self.record = Record(self.root / "record.json", self.files)
        aside = SetAside(logging.getLogger("lamina.agent"))
        self.cluster = ClusterClient(self.kube, self.name, aside)
        self.made = Ownership(self.root / "mig.json", self.files)
        self.context = fake_context(
            self.root,
            self.name,
            clock=self.clock,
            files=self.files,
            kube=self.kube,
            nvml=nvml,
            cluster=self.cluster,
            pod_resources=self.kubelet,
            paths=self.places,
            record=self.record,
            aside=aside,
        )
        self.on_demand = GrantPartitioner(self.context, self, MigMaker(nvml, self.made))
        self.processes = PodProcesses(self.context, self.host, self.root / "cgroup")
        self.survivors = SurvivorPublisher(self.context, self.processes, self.published.append)
        self.owners = ProcessOwners(self.context, self.host, self.root / "cgroup")
        self.sizes = ContainerResizer(self.context, self.owners, lambda sizes: None)
        self.releaser = Releaser(self.context, {RESOURCE}, self.processes)
        settings = structs.replace(DEFAULT.for_node(self.name), modes=(Mode.QUOTA, Mode.MPS, Mode.MIG))
        self.offer_gpus(SharedGpus(0, self.root / "mps"), settings=settings)
        self.offer.update(driver="535.1", observed=tuple(self.gpus.values()))
        self.preparer = self.ticket_preparer(self._write_limits)

    async def dies(self, life: Life, act: Callable[[], Awaitable[object]]) -> bool:
        """Whether an agent with this life dies of what it does. Another one has started then, and reconciled."""
        self.start(life=life)
        try:
            await act()
            return False
        except Died:
            return True
        finally:
            await self.starts_again()

    async def starts_again(self) -> None:
        """What kubelet and the agent do after a start of the agent."""
        self.start()
        await reconcile(self.context)
        await self.on_demand.reconcile()

    def offer_gpus(self, shared: SharedGpus, report: ReportDaemon = unreported, **state: Any) -> None:
        """What the node offers from now on, and the supervisor of its MPS daemons."""
        mode = state.get("mode", Mode.WHOLE)
        self.offer = node_offer(self.name, lambda: devices_in_use(self.record.allocations, mode), **state)
        ports = self.context
        journal = DaemonJournal(ports.settings.mps, self.files)
        lifecycle = DaemonLifecycle(self._mps, ports.nvml, journal, self.files, self.clock)
        self.daemons = DaemonSupervisor(ports, self.offer, shared, lifecycle=lifecycle, report=report)

    def ticket_preparer(self, write: WriteLimits) -> TicketPreparer:
        """One that writes limits in this way."""
        return TicketPreparer(
            self.context,
            KIND,
            self.steps(write),
            GrantClients(self.daemons),
            gpus=lambda: self.gpus,
            release_gone=self.releaser.reconcile,
        )

    def steps(self, write: WriteLimits = write_limits) -> PreparationSteps:
        """Those that write limits in this way."""
        return PreparationSteps(self.context, self.on_demand, GrantClients(self.daemons), write)

    @property
    def resources(self) -> Set[str]:
        return {RESOURCE, "nvidia.com/mig-1g.5gb"}

    def update(self, *, on_demand: OnDemandInstances) -> None:
        self.instances = on_demand

    async def pod(
        self, name: str, *containers: ContainerGrant, node: str = "", grant: dict[str, Any] | None = None
    ) -> str:
        """Make a bound pod with a grant for these containers (none: no grant); its UID. `grant` overrides its spec."""
        bound = {"nodeName": node or self.name, "containers": [{"name": each.name} for each in containers]}
        made = await self.kube.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": bound})
        uid: str = made["metadata"]["uid"]
        if containers:
            spec = Grant(pod=name, pod_uid=uid, node=self.name, dialect="hami", containers=containers)
            meta = {"name": grant_name(name, uid), "namespace": "default", "ownerReferences": [owner(made)]}
            await self.kube.create(GRANTS, {"metadata": meta, "spec": write_spec(spec) | (grant or {})})
        return uid

    def allocate(self, *tickets: str) -> str:
        """Kubelet asks for one container's tickets; the name it is given."""
        return self.record.allocate([tickets], RESOURCE)[0].name

    async def admit(self, pod: str, containers: dict[str, Iterable[str]]) -> dict[str, str]:
        """Allocate for each container in order, and list those not called init...; the names by container.

        Kubelet's checkpoint is not written, see `checkpoint`.
        """
        names = {name: self.allocate(*tickets) for name, tickets in containers.items()}
        for name, tickets in containers.items():
            if not name.startswith("init"):
                self.kubelet.hold(pod, name, *tickets)
        return names

    def checkpoint(self, uid: str, containers: Mapping[str, Iterable[str]], *, resource: str = RESOURCE) -> None:
        """Have kubelet's checkpoint assign these tickets to the containers of the pod, and nothing else."""
        entries = [
            {"PodUID": uid, "ContainerName": name, "ResourceName": resource, "DeviceIDs": {"-1": [*tickets]}}
            for name, tickets in containers.items()
        ]
        written = {"Data": {"PodDeviceEntries": entries, "RegisteredDevices": {}}, "Checksum": 1}
        self.files.write(self.context.settings.kubelet_dir / CHECKPOINT, json.dumps(written).encode())

    def spec(self, name: str) -> dict[str, Any] | None:
        """The CDI edits that a container with this name starts with."""
        path = self.places.cdi / file_name(name)
        if not path.exists():
            return None
        document = json.loads(path.read_text())
        (device,) = document["devices"]
        assert device["name"] == name
        edits: dict[str, Any] = device["containerEdits"]
        return edits

    def limits(self, name: str) -> str:
        """What the limits file says to which the spec of `name` leads."""
        edits = self.spec(name)
        assert edits is not None
        (host,) = [m["hostPath"] for m in edits["mounts"] if m["containerPath"] == "/run/lamina/limits"]
        return Path(host).read_text()

    def disk(self) -> dict[str, str]:
        """Everything on the disk, to compare: path below the root -> content."""
        files = [path for path in sorted(self.root.rglob("*")) if path.is_file()]
        return {str(path.relative_to(self.root)): path.read_text() for path in files}

    def _write_limits(self, folder: Path, granted: ContainerGrant, shares: tuple[Share, ...]) -> None:
        text = " ".join(f"{granted.name}:{GPU.index(s.gpu)}:{s.memory_mib}" for s in shares)
        self.files.write(folder / "limits", text.encode(), mode=0o444)
        self.files.write(folder / "usage", b"", mode=0o666)


def libraries(root: Path) -> FacadeLibraries:
    folder = root / "lib" / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PRELOAD).write_text("")
    return FacadeLibraries(folder, "1")


def owner(pod: dict[str, Any]) -> dict[str, Any]:
    meta = pod["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
