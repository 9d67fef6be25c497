"""The settings of one agent: its node's name and the directories of the node."""

from dataclasses import dataclass, replace
from pathlib import Path

from lamina import native
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.core.object_names import is_object_name
from lamina.dra.names import DRIVER as CLAIM_DRIVER
from lamina.errors import BadInput
from lamina.ports.files import LOCK, Files
from lamina.ports.listener import Address
from lamina.ports.mps.service_client import SOCKET

DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1")
LIBRARIES = (*DRIVER, "libcuda.so")
"""The facade: the driver's two libraries, and the name by which linkers and some programs know the first."""
_MAX_DRIVER_NAME = 63
COVER = "lamina-cover"
"""The program that mounts the facade over the driver's files in a container."""


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """Directories are host paths, because CDI specs pass them to the container runtime. The agent's pod mounts them at
    the same paths.

    `driver_dir` has the driver's libcuda.so.1 and libnvidia-ml.so.1; `facade_dir` has ours with the same names,
    libcuda.so and lamina-cover.
    """

    node: str
    kubeconfig: Path | None = None
    """None: $KUBECONFIG, else the pod's own account."""
    namespace: str = DEFAULT_NAMESPACE
    """Where Lamina is installed."""
    config: Path | None = None
    """Lamina's configuration file. None: the cluster's ConfigMap, or the default if there is none."""
    kubelet_dir: Path = Path("/var/lib/kubelet")
    cdi_dir: Path = Path("/var/run/cdi")
    state_dir: Path = Path("/var/lib/lamina")
    driver_dir: Path = Path("/usr/lib/x86_64-linux-gnu")
    driver_mount: Path | None = None
    """Where the agent's own container has `driver_dir`; None: at the same path."""
    facade_dir: Path | None = None
    """None: the facade of this installation."""
    nvidia_namespace: str = ""
    """The namespace of the ConfigMap that holds NVIDIA's configurations; empty: as Lamina's configuration says."""
    mps_socket: Path = SOCKET
    """Where the MPS service of the node listens."""
    mps_root: Path | None = None
    """The directory of MPS's pipe directories; None: as NVIDIA's configuration says."""
    metrics: Address | None = None
    """The address of the metrics endpoint; None: no endpoint."""
    protect_metrics: bool = False
    """Whether metrics are served over HTTPS, and only to callers that the API server allows to get them."""
    dra: bool = False
    """Whether ResourceClaims get GPUs of the node."""
    dra_driver: str = CLAIM_DRIVER
    """The name of the driver for them."""
    dra_binding: bool = False
    """Whether claims are prepared before their pods are bound to the node."""
    selinux_type: str = ""
    """The SELinux type of folders with files for containers; empty: the kernel's choice."""
    poll_s: float = 2.0
    """Seconds between two polls of GPUs, daemons and ended containers."""

    def checked(self) -> "AgentSettings":
        """The same with absolute paths. Raises BadInput for settings that cannot work."""
        if not self.node:
            raise BadInput("the agent has no node name; set --node or NODE_NAME to the name that Kubernetes knows")
        if not is_object_name(self.dra_driver) or len(self.dra_driver) > _MAX_DRIVER_NAME:
            raise BadInput(
                f"--dra-driver must be a name such as {CLAIM_DRIVER} of at most {_MAX_DRIVER_NAME} characters, got "
                f"{self.dra_driver!r}"
            )
        facade = self.facade_dir or native.path("facade/libcuda.so.1").parent
        for folder, what, libraries in ((self.driver, "driver", DRIVER), (facade, "facade", (*LIBRARIES, COVER))):
            for library in libraries:
                if not Files().has_file(folder / library):
                    raise BadInput(
                        f"{folder / library} does not exist; set the directory that contains the {what}'s {library}"
                    )
        return replace(
            self,
            kubelet_dir=_absolute(self.kubelet_dir),
            cdi_dir=_absolute(self.cdi_dir),
            state_dir=_absolute(self.state_dir),
            driver_dir=_absolute(self.driver_dir),
            facade_dir=_absolute(facade),
            mps_root=_absolute(self.mps_root) if self.mps_root else None,
            mps_socket=_absolute(self.mps_socket),
        )

    @property
    def driver(self) -> Path:
        """The directory of the driver's libraries, as the agent has it."""
        return self.driver_mount or self.driver_dir

    @property
    def containers(self) -> Path:
        """One directory per container with limits."""
        return self.state_dir / "containers"

    @property
    def metrics_address(self) -> Path:
        """A file with the URL of the metrics endpoint while it is served."""
        return self.state_dir / "metrics.url"

    @property
    def record(self) -> Path:
        return self.state_dir / "record.json"

    @property
    def accounts(self) -> Path:
        """What workloads held and used over time."""
        return self.state_dir / "accounts.json"

    @property
    def configuration(self) -> Path:
        """The last accepted text of Lamina's configuration."""
        return self.state_dir / "lamina.yaml"

    @property
    def nvidia(self) -> Path:
        """The last accepted configuration of NVIDIA's plugin."""
        return self.state_dir / "nvidia.json"

    @property
    def time_slices(self) -> Path:
        """The GPUs whose time slices the agent changed."""
        return self.state_dir / "time-slices.json"

    @property
    def mps(self) -> Path:
        """The journal of MPS daemons."""
        return self.state_dir / "mps.json"

    @property
    def made(self) -> Path:
        """The MIG instances and modes that Lamina made."""
        return self.state_dir / "mig.json"

    @property
    def libraries(self) -> Path:
        """The facade as containers see it, one directory per version."""
        return self.state_dir / "lib"

    @property
    def all_state_paths(self) -> tuple[Path, ...]:
        """Everything that the agent makes in its state directory, except temporary files."""
        files = (self.record, self.accounts, self.configuration, self.nvidia, self.time_slices, self.mps)
        return (self.containers, self.libraries, *files, self.made, self.metrics_address, self.state_dir / LOCK)


def _absolute(path: Path) -> Path:
    return Path.cwd() / path
