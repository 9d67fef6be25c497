"""Where an agent works: its node's name and the folders of the node."""

from dataclasses import dataclass, replace
from pathlib import Path

from lamina import native
from lamina.errors import BadInput
from lamina.ports.files import LOCK
from lamina.ports.listening import Address

DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1")
LIBRARIES = (*DRIVER, "libcuda.so")
"""The facade: the driver's two libraries, and the name by which linkers and some programs know the first."""
COVER = "lamina-cover"
"""The program that puts the facade over the driver's files of a container."""


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """Folders are host paths, because CDI specs name them to the container runtime; in a pod they are mounted alike.

    `driver_dir` holds the driver's libcuda.so.1 and libnvidia-ml.so.1, `facade_dir` ours: the same, libcuda.so and
    lamina-cover.
    """

    node: str
    kubeconfig: Path | None = None
    """None: $KUBECONFIG, else the pod's own account."""
    config: Path | None = None
    """Lamina's configuration file; None is the cluster's ConfigMap, and the default where there is none."""
    kubelet_dir: Path = Path("/var/lib/kubelet")
    cdi_dir: Path = Path("/var/run/cdi")
    state_dir: Path = Path("/var/lib/lamina")
    driver_dir: Path = Path("/usr/lib/x86_64-linux-gnu")
    driver_seen_at: Path | None = None
    """Where the agent's own container has `driver_dir`; None: at the same path."""
    facade_dir: Path | None = None
    """None: the facade that this installation brought."""
    nvidia_namespace: str = ""
    """The namespace of the ConfigMap that holds NVIDIA's configurations; empty: as Lamina's configuration says."""
    mps_control: str = "nvidia-cuda-mps-control"
    """NVIDIA's program for MPS: its path, or its name to be looked for on PATH."""
    mps_root: Path | None = None
    """Where the pipe directories of MPS are; None: as NVIDIA's configuration says."""
    mps_shm: Path = Path("/dev/shm")
    """The host's folder that this agent, and so its MPS daemons, have as /dev/shm."""
    metrics: Address | None = None
    """Where Prometheus reads; None: nowhere."""
    poll_s: float = 2.0
    """Seconds between two looks at the GPUs, kubelet's socket and the containers that have ended."""

    def checked(self) -> "AgentSettings":
        """The same with absolute folders. Raises BadInput for what cannot work."""
        if not self.node:
            raise BadInput("the agent has no node name; set --node or NODE_NAME to the name that Kubernetes knows")
        facade = self.facade_dir or native.path("facade/libcuda.so.1").parent
        driver = self.driver_seen_at or self.driver_dir
        for folder, what, libraries in ((driver, "driver", DRIVER), (facade, "facade", (*LIBRARIES, COVER))):
            for library in libraries:
                if not (folder / library).is_file():
                    raise BadInput(f"{folder / library} is not there; name the folder of the {what}'s {library}")
        return replace(
            self,
            kubelet_dir=_absolute(self.kubelet_dir),
            cdi_dir=_absolute(self.cdi_dir),
            state_dir=_absolute(self.state_dir),
            driver_dir=_absolute(self.driver_dir),
            facade_dir=_absolute(facade),
            mps_root=_absolute(self.mps_root) if self.mps_root else None,
            mps_shm=_absolute(self.mps_shm),
        )

    @property
    def containers(self) -> Path:
        """One folder per container that is held to limits."""
        return self.state_dir / "containers"

    @property
    def metrics_address(self) -> Path:
        """A file with the URL of the metrics while they are served."""
        return self.state_dir / "metrics.url"

    @property
    def record(self) -> Path:
        return self.state_dir / "record.json"

    @property
    def configuration(self) -> Path:
        """The text of Lamina's configuration that held last."""
        return self.state_dir / "lamina.yaml"

    @property
    def nvidia(self) -> Path:
        """NVIDIA's configuration that held last."""
        return self.state_dir / "nvidia.json"

    @property
    def time_slices(self) -> Path:
        """The GPUs whose time slices the agent has set."""
        return self.state_dir / "time-slices.json"

    @property
    def mps(self) -> Path:
        """Which MPS daemons were made."""
        return self.state_dir / "mps.json"

    @property
    def made(self) -> Path:
        """What was made of MIG."""
        return self.state_dir / "mig.json"

    @property
    def libraries(self) -> Path:
        """The facade as containers see it, one folder per version."""
        return self.state_dir / "lib"

    @property
    def all_kept(self) -> tuple[Path, ...]:
        """Everything that the agent makes in its own folder, but what is being written."""
        noted = (self.record, self.configuration, self.nvidia, self.time_slices, self.mps, self.made)
        return (self.containers, self.libraries, *noted, self.metrics_address, self.state_dir / LOCK)


def _absolute(path: Path) -> Path:
    return Path.cwd() / path
