"""How much of a GPU that is shared by time alone each pod uses: by the processes on it, known by their cgroups.

Containers that share a GPU by time alone or by MPS have no account of their own, so the driver is asked. A pod's number
is reported only if every process on the GPU is known; otherwise some usage would be missing.
"""

from collections.abc import Iterable, Mapping

from lamina.ports.cgroups import is_of_pod
from lamina.ports.host import Host
from lamina.ports.nvml import GpuProcess

_MPS_SERVER = "nvidia-cuda-mps-server"[:15]
"""The name of the process that serves the clients of MPS. What it holds is no pod's."""


def memory_by_pod(processes: Iterable[GpuProcess], uids: Iterable[str], host: Host) -> Mapping[str, int] | None:
    """Bytes by UID of the pod; None if a process, or what it uses, is not known.

    A pod that is listed twice has several containers on the GPU. Which one uses what is not known, so it is left out.
    """
    listed = list(uids)
    used = dict.fromkeys(listed, 0)
    for process in processes:
        groups = host.process_cgroups(process.pid)
        pod = next((uid for uid in used if is_of_pod(groups, uid)), None)
        if pod is None and host.process_name(process.pid) == _MPS_SERVER:
            continue
        if pod is None or process.memory_bytes is None:
            return None
        used[pod] += process.memory_bytes
    return {uid: size for uid, size in used.items() if listed.count(uid) == 1}
