"""A node with every door faked but the disk: what the tests of prepare, release and reconcile stand on."""

import json
from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import Any

import msgspec

from lamina.agent.cdi import file_name
from lamina.agent.cluster import Cluster
from lamina.agent.health import GpuState
from lamina.agent.inventory import Divided
from lamina.agent.libraries import PRELOAD, Libraries
from lamina.agent.mig.made import Made
from lamina.agent.mig.maker import Maker
from lamina.agent.mig.on_demand import OnDemand
from lamina.agent.plan import Places
from lamina.agent.prepare import Preparer
from lamina.agent.record import Record
from lamina.agent.release import Releaser
from lamina.agent.tickets import kinds
from lamina.dialects.config import DEFAULT
from lamina.model.gpus import MigInstance, Mode
from lamina.model.grants import ContainerGrant, Grant, Share, grant_name
from lamina.ports.clock import FakeClock
from lamina.ports.files import Files
from lamina.ports.kube import GRANTS, PODS
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kubelet.fake import FakePodResources
from lamina.ports.nvml import FakeNvml, GpuFacts
from lamina.ports.nvml.fake import fake_gpus

RESOURCE = "nvidia.com/gpu"
KIND, VGPU, MEMORY = kinds(DEFAULT)
FACTS = fake_gpus(4)
GPU = [facts.uuid for facts in FACTS]


def share(
    gpu: int = 0, memory: int = 1000, *, cores: int = 0, mode: Mode = Mode.QUOTA, mig: MigInstance | None = None
) -> Share:
    return Share(gpu=GPU[gpu], memory_mib=memory, cores=cores, mode=mode, mig=mig)


def container(name: str, *shares: Share, init: bool = False, sidecar: bool = False) -> ContainerGrant:
    return ContainerGrant(name=name, shares=shares or (share(),), init=init, sidecar=sidecar)


class Node:
    """`kube` and `kubelet` are the fakes; `node_name` is where pods are bound unless a test says otherwise."""

    name = "node-1"

    def __init__(self, root: Path, files: Files | None = None, facts: Sequence[GpuFacts] = FACTS) -> None:
        self.root = root
        self.kube = FakeKube()
        self.kubelet = FakePodResources()
        self.clock = FakeClock()
        self.nvml = FakeNvml(facts)
        self.gpus = {each.uuid: GpuState(each) for each in facts}
        self.cuttable: Set[str] | None = {each.uuid for each in facts if each.mig_capable}
        self.divided = Divided()
        self.places = Places(root / "containers", root / "cdi", root / "driver", libraries(root))
        self.start(files)

    def start(self, files: Files | None = None) -> None:
        """Begin anew with what is on the disk, as a restarted agent does."""
        self.files = files or Files()
        self.record = Record(self.root / "record.json", self.files)
        self.cluster = Cluster(self.kube, self.name)
        self.made = Made(self.root / "mig.json", self.files)
        self.on_demand = OnDemand(
            maker=Maker(self.nvml, self.made),
            record=self.record,
            pod_resources=self.kubelet,
            gpus=lambda: self.gpus,
            resources=lambda: {RESOURCE, "nvidia.com/mig-1g.5gb"},
            cuttable=lambda: self.cuttable,
            tell=lambda divided: setattr(self, "divided", divided),
            dismantle=False,
        )
        self.releaser = Releaser(
            resources={RESOURCE},
            record=self.record,
            pod_resources=self.kubelet,
            cluster=self.cluster,
            places=self.places,
            files=self.files,
            clock=self.clock,
        )
        self.preparer = Preparer(
            node=self.name,
            kind=KIND,
            record=self.record,
            pod_resources=self.kubelet,
            cluster=self.cluster,
            gpus=lambda: self.gpus,
            places=self.places,
            files=self.files,
            write_limits=self._write_limits,
            on_demand=self.on_demand,
            sweep=self.releaser.sweep,
        )

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
            await self.kube.create(GRANTS, {"metadata": meta, "spec": msgspec.to_builtins(spec) | (grant or {})})
        return uid

    def allocate(self, *tickets: str) -> str:
        """Kubelet asks for one container's tickets; the name it is given."""
        return self.record.allocate([tickets], RESOURCE)[0].name

    async def admit(self, pod: str, containers: dict[str, Iterable[str]]) -> dict[str, str]:
        """Allocate for each container in order, and list those not called init...; the names by container."""
        names = {name: self.allocate(*tickets) for name, tickets in containers.items()}
        for name, tickets in containers.items():
            if not name.startswith("init"):
                self.kubelet.hold(pod, name, *tickets)
        return names

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


def libraries(root: Path) -> Libraries:
    folder = root / "lib" / "1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PRELOAD).write_text("")
    return Libraries(folder, "1")


def owner(pod: dict[str, Any]) -> dict[str, Any]:
    meta = pod["metadata"]
    return {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
