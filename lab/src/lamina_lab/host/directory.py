"""The directory of a lab: private to its user, with a path short enough for the sockets inside it.

Everything that a lab creates is in its directory, so that stopping a lab means ending its processes and removing one
tree. The path is also the lab's identity: every process of the lab carries it in its environment.
"""

import os
import re
import tempfile
from pathlib import Path

from msgspec import Struct

from lamina.errors import BadInput

MARKER = "LAMINA_LAB"
"""The environment variable that every process of a lab carries. Its value is the lab's directory."""

# The path of a Unix socket has at most 107 bytes. The longest one in a lab is a device plugin's: root + 56 bytes.
_MAX_ROOT = 107 - 56
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")


class NodeDirectory(Struct, frozen=True):
    """The part of a lab's directory that stands for one node's disk."""

    root: Path

    @property
    def machine(self) -> Path:
        """State of the simulated GPUs, shared by all processes of the node."""
        return self.root / "machine"

    @property
    def kubelet(self) -> Path:
        return self.root / "k"

    @property
    def kubelet_api(self) -> Path:
        """The socket on which the API server reaches this node's kubelet for logs and exec."""
        return self.root / "api"

    @property
    def cdi(self) -> Path:
        return self.root / "cdi"

    @property
    def agent_state(self) -> Path:
        return self.root / "state"

    @property
    def mps(self) -> Path:
        """The pipe directories of MPS."""
        return self.root / "mps"

    @property
    def mps_socket(self) -> Path:
        """Where the node's MPS service listens."""
        return self.root / "mps.sock"

    @property
    def metrics_url(self) -> Path:
        """The file to which the agent writes the URL of its metrics."""
        return self.agent_state / "metrics.url"

    def log(self, process: str) -> Path:
        return self.root / f"{process}.log"


class LabDirectory(Struct, frozen=True):
    """The directory of one lab."""

    root: Path

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def status(self) -> Path:
        return self.root / "lab.json"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def config(self) -> Path:
        return self.root / "lamina.yaml"

    @property
    def plan(self) -> Path:
        """The plan of the lab: nodes, GPUs, ports."""
        return self.root / "plan.json"

    @property
    def addresses(self) -> Path:
        """The file to which the controller writes the ports on which it listens."""
        return self.root / "addresses.json"

    @property
    def admission_addresses(self) -> Path:
        """The file to which admission writes its own."""
        return self.root / "admission-addresses.json"

    @property
    def programs(self) -> Path:
        return self.root / "bin"

    @property
    def image_root(self) -> Path:
        """Files that the scenarios' container images have at absolute paths."""
        return self.root / "image"

    def log(self, process: str) -> Path:
        return self.root / f"{process}.log"

    def node(self, index: int) -> NodeDirectory:
        return NodeDirectory(self.root / "n" / str(index))


def labs_root() -> Path:
    """The directory that holds this user's labs. `LAMINA_LABS` overrides it."""
    chosen = os.environ.get("LAMINA_LABS")
    root = Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"lamina-{os.getuid()}"
    if not root.is_absolute():
        raise BadInput(f"LAMINA_LABS must be an absolute path, got {chosen!r}")
    return root


def lab_directory(name: str) -> LabDirectory:
    """The directory of the lab `name`, whether it exists or not. Raises BadInput if the name is not valid."""
    if _NAME.fullmatch(name) is None:
        raise BadInput(f"{name!r} is not a valid lab name; use up to 20 lower-case letters, digits and inner hyphens")
    root = labs_root() / name
    if len(os.fsencode(root)) > _MAX_ROOT:
        raise BadInput(
            f"the path {root} is longer than {_MAX_ROOT} bytes, which is too long for the lab's sockets; "
            "set LAMINA_LABS to a shorter path"
        )
    return LabDirectory(root)


def make_private(path: Path) -> None:
    """Create `path` for this user only. Raises BadInput if it already belongs to another user."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.lstat().st_uid != os.getuid() or not path.is_dir() or path.is_symlink():
        raise BadInput(f"{path} belongs to another user or is a link; set LAMINA_LABS to a directory that you own")
    path.chmod(0o700)


def known_labs() -> list[LabDirectory]:
    """Every lab of this user that has a directory, running or not."""
    root = labs_root()
    if not root.is_dir():
        return []
    labs = [LabDirectory(path) for path in sorted(root.iterdir())]
    return [lab for lab in labs if lab.plan.is_file()]
