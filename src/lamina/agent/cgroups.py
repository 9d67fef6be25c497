"""Where a container's processes are accounted: its leaf in the tree of cgroup v2.

Kubelet names the pod's folder after the pod's UID, the container runtime the leaf below it after the container's id:
`kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<UID with _>.slice/cri-containerd-<id>.scope` with
systemd, `kubepods/burstable/pod<UID>/<id>` without. The leaf exists once the container was created, and a restarted
container has another one.
"""

from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_PODS = ("kubepods*", "kubepods*/*burstable*", "kubepods*/*besteffort*")
"""Where the folders of pods are, of each class of service; nothing is looked for inside of other pods."""


def unified(root: Path = ROOT) -> bool:
    """Whether this is cgroup v2."""
    return (root / "cgroup.controllers").is_file()


def leaf(pod_uid: str, container_id: str, root: Path = ROOT) -> Path | None:
    """The folder of a container; None while there is none, or more than one could be meant.

    `container_id` is as in a pod's status, such as ``containerd://4f3c...``.
    """
    ident = container_id.rpartition("//")[2]
    if not ident.isalnum() or len(ident) < 12:
        return None
    names = [f"*pod{uid}*" for uid in (pod_uid, pod_uid.replace("-", "_"))]
    pods = {pod for place in _PODS for name in names for pod in root.glob(f"{place}/{name}")}
    found = [path for pod in pods for path in pod.iterdir() if path.is_dir() and ident in path.name]
    return found[0] if len(found) == 1 else None
