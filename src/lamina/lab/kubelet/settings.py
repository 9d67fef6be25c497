"""What a kubelet is told when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lamina.lab.directory import MARKER

NODE_MARKER = "LAMINA_NODE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`cpus` and `memory_mib` are what the node claims to have; only the scheduler cares."""

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

    @property
    def marker(self) -> dict[str, str]:
        """Variables by which every process of this node's containers is found again."""
        return {MARKER: self.lab_id, NODE_MARKER: self.node}

    def pod_dir(self, uid: str) -> Path:
        return self.root_dir / "pods" / uid

    def instance(self, uid: str, container: str, number: int) -> Path:
        """Working directory of one instance of a container; its log lies beside it."""
        return self.pod_dir(uid) / container / str(number)

    def log(self, uid: str, container: str, number: int) -> Path:
        return self.pod_dir(uid) / container / f"{number}.log"
