"""One node: containerd, kubelet and kube-proxy in a sandbox, with a disk that lasts over a reboot."""

import time
from pathlib import Path

from lamina.ports.kube import NODES
from lamina_lab import simgpu
from tests.cluster.components import cgroups, containerd, guard, kubelet, network, proxy
from tests.cluster.components.binaries import Binaries
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.control import ControlPlane
from tests.cluster.components.daemons import Daemon
from tests.cluster.components.gpus import Gpus
from tests.cluster.components.sandboxes import Sandbox


class RealNode:
    """A node of the cluster, number 1 to `count`. `group` is its control group, in all hierarchies."""

    def __init__(
        self,
        number: int,
        count: int,
        folder: Path,
        group: str,
        machine: simgpu.Machine,
        driver: Path,
        control: ControlPlane,
        binaries: Binaries,
    ) -> None:
        self.name = f"node{number}"
        self.number, self.address = number, network.node_address(number)
        self.folder, self.group = folder, f"{group}/{self.name}"
        self._count, self._control, self._binaries = count, control, binaries
        folder.mkdir(parents=True)
        self.gpus = Gpus(folder / "gpu", machine, driver)
        runtime = self.gpus.write_runtime(folder, binaries["runc"])
        network.write_cni(folder / "cni", number)
        config = containerd.write(folder, cni=binaries.cni, cni_config=folder / "cni", runtime=runtime)
        self._containerd = [binaries["containerd"], "--config", config]
        self._kubelet = [
            binaries["kubelet"],
            *kubelet.arguments(folder, self.name, number, self.group, control.authority, binaries.version),
        ]
        config = proxy.write(folder / "proxy.yaml", self.name, control.authority)
        self._proxy = [binaries["kube-proxy"], "--config", config]
        self._boot()

    def _boot(self) -> None:
        """Open the sandbox, with an empty /run and the disk as it is."""
        cgroups.make(self.group)
        disk = self.folder / "disk"
        self.sandbox = Sandbox(self.name, {Path("/var/lib"): disk / "lib", Path("/var/log"): disk / "log"})
        network.plug_in(self._control.sandbox, self.sandbox, self.number, self._count)
        self.containerd = self._daemon("containerd", self._containerd)
        self.kubelet = self._daemon("kubelet", self._kubelet)
        self.proxy = self._daemon("kube-proxy", self._proxy)

    def _daemon(self, name: str, command: list[str | Path]) -> Daemon:
        return Daemon(self.sandbox, name, command, self._binaries.environment, self.folder / "logs" / f"{name}.log")

    def start_containerd(self) -> None:
        self.containerd.start()
        self.containerd.until(self._answers, "an answer of containerd")

    def start_kubelet(self) -> None:
        self.kubelet.start()
        self.proxy.start()

    def load(self, archive: Path) -> None:
        """Import an image from its archive."""
        self.ctr("images", "import", archive)

    def ctr(self, *words: str | Path) -> str:
        """Standard output of containerd's own client, in the namespace that kubelet uses."""
        command = [self._binaries["ctr"], "-a", containerd.SOCKET, "-n", "k8s.io", *words]
        return self.sandbox.run(*command, env=self._binaries.environment, timeout=120)

    def _answers(self) -> bool:
        try:
            self.ctr("version")
        except Unavailable:
            return False
        return True

    @property
    def ready(self) -> bool:
        """Whether the API server calls the node ready."""
        try:
            status = self._control.read(NODES.path(name=self.name))["status"]
        except Unavailable:
            return False
        return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", []))

    def wait(self) -> None:
        """Until the node is ready."""
        self.kubelet.until(lambda: self.ready, f"readiness of {self.name}")

    def power_off(self) -> None:
        """Everything ends at once; the disk stays."""
        self.sandbox.close()
        network.unplug(self._control.sandbox, self.number)
        deadline = time.monotonic() + 20
        while guard.remove_groups(self.group) and time.monotonic() < deadline:
            time.sleep(0.05)

    def reboot(self) -> None:
        """Power off and on; returns when containerd and kubelet run."""
        self.power_off()
        self.gpus.power_cycle()
        self._boot()
        self.start_containerd()
        self.start_kubelet()
