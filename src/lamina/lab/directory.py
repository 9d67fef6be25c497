"""Where a lab lives: one private directory a lab, short enough for the sockets inside it.

Everything that a lab makes lies in its directory, so that taking a lab down is ending its processes and removing one
tree. The directory's path is also the lab's identity: every process of the lab carries it in its environment.
"""

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lamina.errors import BadInput

MARKER = "LAMINA_LAB"
"""The environment variable that every process of a lab carries; its value is the lab's directory."""

DEFAULT_NAME = "default"

# A Unix socket's path has at most 107 bytes. The longest one inside a lab is a device plugin's, 56 bytes below root.
_LONGEST_ROOT = 107 - 56
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")


@dataclass(frozen=True)
class NodeDirectory:
    """The part of a lab's directory that plays one node's disk."""

    root: Path

    @property
    def machine(self) -> Path:
        """The simulated GPUs' state, shared by all processes of the node."""
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
    def metrics_url(self) -> Path:
        """Where the agent says at which URL it serves its metrics."""
        return self.agent_state / "metrics.url"

    def log(self, process: str) -> Path:
        return self.root / f"{process}.log"


@dataclass(frozen=True)
class LabDirectory:
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
        """What the lab was asked to be: nodes, GPUs, ports."""
        return self.root / "plan.json"

    @property
    def addresses(self) -> Path:
        """Where the control part says on which ports it listens."""
        return self.root / "addresses.json"

    @property
    def programs(self) -> Path:
        return self.root / "bin"

    @property
    def image_root(self) -> Path:
        """Files that container images of the scenarios hold at absolute paths."""
        return self.root / "image"

    def log(self, process: str) -> Path:
        return self.root / f"{process}.log"

    def node(self, index: int) -> NodeDirectory:
        return NodeDirectory(self.root / "n" / str(index))


def labs_root() -> Path:
    """The directory that holds this user's labs; `LAMINA_LABS` names another one."""
    chosen = os.environ.get("LAMINA_LABS")
    root = Path(chosen) if chosen else Path(tempfile.gettempdir()) / f"lamina-{os.getuid()}"
    if not root.is_absolute():
        raise BadInput(f"LAMINA_LABS is {chosen!r}; allowed is an absolute path")
    return root


def lab_directory(name: str) -> LabDirectory:
    """The directory of the lab `name`, made or not. Raises BadInput where the name or its path cannot serve."""
    if _NAME.fullmatch(name) is None:
        raise BadInput(
            f"{name!r} is not a name for a lab; allowed are up to 20 lower-case letters, digits and inner hyphens"
        )
    root = labs_root() / name
    if len(os.fsencode(root)) > _LONGEST_ROOT:
        raise BadInput(
            f"{root} is too long for the sockets of a lab, which allow {_LONGEST_ROOT} bytes; "
            "set LAMINA_LABS to a shorter path"
        )
    return LabDirectory(root)


def make_private(path: Path) -> None:
    """Make `path` so that only this user enters it. Raises BadInput where somebody else made it before."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if found.st_uid != os.getuid() or not path.is_dir() or path.is_symlink():
        raise BadInput(f"{path} belongs to another user or is a link; set LAMINA_LABS to a directory of your own")
    path.chmod(0o700)


def known_labs() -> list[LabDirectory]:
    """Every lab of this user that has a directory, running or not."""
    root = labs_root()
    if not root.is_dir():
        return []
    labs = [LabDirectory(path) for path in sorted(root.iterdir())]
    return [lab for lab in labs if lab.plan.is_file()]
