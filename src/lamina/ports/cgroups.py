"""The cgroup tree of the host: which directory accounts the processes of a container, and whether a pod has any.

Kubelet names the pod's directory after the pod's UID, and the container runtime names the one below it after the
container's ID:

    kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<UID with _>.slice/cri-containerd-<ID>.scope  systemd
    kubepods/burstable/pod<UID>/<ID>                                                                            cgroupfs

The directory exists once the container has been created, and a restarted container has another one. Tests pass a
directory of their own as `root`.
"""

import re
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_PODS = ("kubepods*", "kubepods*/*burstable*", "kubepods*/*besteffort*")
"""Where the directories of pods are, for each quality-of-service class; other pods' directories are not searched."""
_V1 = "memory"
"""The controller of cgroup v1 that accounts every container."""
_MIN_ID = 12
_POD = re.compile(r"pod[0-9a-f]{8}([-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12}")


def is_unified(root: Path = ROOT) -> bool:
    """Whether this is cgroup v2."""
    return (root / "cgroup.controllers").is_file()


def container_cgroup(pod_uid: str, container_id: str, root: Path = ROOT) -> Path | None:
    """The directory of a container; None if there is none, or more than one matches.

    `container_id` is as in a pod's status, such as ``containerd://4f3c...``.
    """
    identifier = container_id.rpartition("//")[2]
    if not identifier.isalnum() or len(identifier) < _MIN_ID:
        return None
    pods = _pod_cgroups(pod_uid, root)
    matches = [path for pod in pods for path in pod.iterdir() if path.is_dir() and identifier in path.name]
    return matches[0] if len(matches) == 1 else None


def pod_has_processes(pod_uid: str, root: Path = ROOT) -> bool:
    """Whether a process is in a cgroup of the pod, by cgroup v2 or v1. False where kubelet's cgroups are not found."""
    return any(_is_populated(pod) for tree in (root, root / _V1) for pod in _pod_cgroups(pod_uid, tree))


def is_of_pod(cgroups: str, pod_uid: str) -> bool:
    """Whether paths of cgroups are those of a pod."""
    return any(uid in cgroups for uid in _spellings(pod_uid))


def names_pod(cgroups: str) -> bool:
    """Whether paths of cgroups are those of some pod."""
    return _POD.search(cgroups) is not None


def has_cgroup(pod_uid: str, root: Path = ROOT) -> bool:
    """Whether kubelet has made a cgroup for the pod, so that all processes of the pod are in it."""
    return any(_pod_cgroups(pod_uid, tree) for tree in (root, root / _V1))


def _pod_cgroups(pod_uid: str, root: Path) -> set[Path]:
    patterns = [f"*pod{uid}*" for uid in _spellings(pod_uid)]
    return {pod for place in _PODS for pattern in patterns for pod in root.glob(f"{place}/{pattern}")}


def _spellings(pod_uid: str) -> tuple[str, str]:
    """The UID with dashes or, as systemd writes it, underscores."""
    return pod_uid, pod_uid.replace("-", "_")


def _is_populated(cgroup: Path) -> bool:
    """What cannot be read, because it is just removed for example, counts as populated until it is read again."""
    try:
        if (events := cgroup / "cgroup.events").exists():
            return "populated 1" in events.read_text().splitlines()
        return any(listed.read_text() for listed in cgroup.rglob("cgroup.procs"))
    except OSError:
        return True
