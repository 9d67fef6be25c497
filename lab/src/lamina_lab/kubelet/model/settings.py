"""The settings of a kubelet."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from lamina_lab.host.directory import MARKER

NODE_MARKER = "LAMINA_NODE"


class Settings(Struct, frozen=True, kw_only=True):
    """`cpus` and `memory_mib` are the node's nominal capacity; only the scheduler uses them."""

    node: str
    lab_id: str
    kubeconfig: Path
    kubelet_dir: Path
    cdi_dirs: tuple[Path, ...]
    programs: Path
    root_dir: Path
    socket: Path
    labels: Mapping[str, str] = field(default_factory=dict)
    container_env: Mapping[str, str] = field(default_factory=dict)
    gpu_env: Mapping[str, str] = field(default_factory=dict)
    cpus: int = 64
    memory_mib: int = 256 * 1024
    node_ip: str = "127.0.0.1"
    refuse_visible_devices: bool = False
    """Whether NVIDIA's runtime takes GPUs from mounts only, and not from the variable."""

    @property
    def marker(self) -> dict[str, str]:
        """Variables by which every process of this node's containers is found."""
        return {MARKER: self.lab_id, NODE_MARKER: self.node}

    def pod_dir(self, uid: str) -> Path:
        return self.root_dir / "pods" / uid

    def instance(self, uid: str, container: str, number: int) -> Path:
        """Working directory of one instance of a container; its log is next to it."""
        return self.pod_dir(uid) / container / str(number)

    def log(self, uid: str, container: str, number: int) -> Path:
        return self.pod_dir(uid) / container / f"{number}.log"
