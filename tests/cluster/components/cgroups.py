"""The cluster's control groups: a folder of its own in each hierarchy, with one for each node."""

from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


def hierarchies() -> list[Path]:
    """Where control groups are mounted: one place with version 2, else one for each controller."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    return sorted({path.resolve() for path in ROOT.iterdir() if (path / "cgroup.procs").exists()})


def make(name: str) -> None:
    """The group `name` (with slashes) in every hierarchy, with all that its parents have."""
    for hierarchy in hierarchies():
        at = hierarchy
        for part in name.split("/"):
            parent, at = at, at / part
            at.mkdir(exist_ok=True)
            _hand_down(parent, at)


def _hand_down(parent: Path, child: Path) -> None:
    """What a group needs before there can be processes in it."""
    for setting in ("cpuset.cpus", "cpuset.mems"):
        if (child / setting).exists() and not (child / setting).read_text().strip():
            (child / setting).write_text((parent / setting).read_text())
    if (parent / "cgroup.controllers").exists():
        controllers = (parent / "cgroup.controllers").read_text().split()
        (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))
