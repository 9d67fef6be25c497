"""How much of a GPU that nobody divides each pod uses: by the processes on it, each known by its cgroup's path.

Containers that share a GPU by time alone have no account of their own, so the driver is asked. A pod's number is told
only where every process on the GPU is known, for else some of it would be told as nobody's.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from lamina.model.quantities import MIB
from lamina.ports.nvml import GpuProcess

PROC = Path("/proc")


def by_pod(processes: Iterable[GpuProcess], uids: Iterable[str], proc: Path = PROC) -> Mapping[str, int] | None:
    """Bytes of each of the pods, by UID; None where a process, or what it uses, is not known.

    A pod that is named twice has several containers there, of which nobody knows which one uses what: it is left out.
    """
    named = list(uids)
    used = dict.fromkeys(named, 0)
    for process in processes:
        pod = _pod(process.pid, used, proc)
        if pod is None or process.memory_mib is None:
            return None
        used[pod] += process.memory_mib * MIB
    return {uid: size for uid, size in used.items() if named.count(uid) == 1}


def _pod(pid: int, uids: Iterable[str], proc: Path) -> str | None:
    """The pod whose UID stands in the process's cgroup, with dashes or, as systemd has it, underscores."""
    try:
        path = (proc / str(pid) / "cgroup").read_text()
    except OSError:
        return None
    return next((uid for uid in uids if uid in path or uid.replace("-", "_") in path), None)
