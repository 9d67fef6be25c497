"""Queries to a cluster about an installation."""

import json
from typing import Any

from tests.cluster.components.audit import NAMESPACE
from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.installation import Installation
from tests.cluster.queries import Object, allocatable, got, pod
from tests.waiting import wait_until

ROLLOUT_S = 180.0
"""A fair machine takes a quarter of it."""
SHARE = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}
SEEN = "0MiB /   3000MiB"
TICKETS = 20
"""What a node offers of nvidia.com/gpu: ten for each of its two GPUs."""
NONSENSE = {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 101}


def listed(cluster: RealCluster, *words: str) -> list[Object]:
    found: list[Object] = json.loads(cluster.kubectl("get", *words, "-o", "json"))["items"]
    return found


def parts(cluster: RealCluster, part: str = "") -> list[Object]:
    """The pods of an installation, or those of one part."""
    chosen = ["-l", f"app.kubernetes.io/component={part}"] if part else []
    return listed(cluster, "pods", "-n", NAMESPACE, *chosen)


def _ready(of: Object) -> bool:
    conditions = of["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def whole(cluster: RealCluster) -> None:
    """Wait until each part has all its pods, all of them ready."""

    def all_ready() -> bool:
        kinds = listed(cluster, "deployments,daemonsets", "-n", NAMESPACE)
        wanted = {each["metadata"]["name"]: _replicas(each) for each in kinds}
        present = {name: [*map(_ready, parts(cluster, name.removeprefix("lamina-")))] for name in wanted}
        return len(wanted) == 3 and all(present[name] == [True] * wanted[name] for name in wanted)

    wait_until(all_ready, lambda: cluster.kubectl("describe", "pods", "-n", NAMESPACE), ROLLOUT_S)


def _replicas(owner: Object) -> int:
    return int(owner["spec"].get("replicas") or owner["status"].get("desiredNumberScheduled", 0))


def serves(cluster: RealCluster, node: str) -> None:
    """Wait until the node offers GPUs, and admission answers."""
    wait_until(lambda: allocatable(cluster, node) == TICKETS, lambda: cluster.kubectl("describe", "node", node))
    wait_until(lambda: admits(cluster), lambda: "admission lets nonsense pass, or does not answer")


def rolled_out(cluster: RealCluster, what: str) -> None:
    """Wait until all pods of it are of its newest template."""
    cluster.kubectl("rollout", "status", "-n", NAMESPACE, what, f"--timeout={ROLLOUT_S - 10}s", timeout=ROLLOUT_S)


def reported(lamina: Installation, what: str) -> str:
    """All that the doctor says of one thing: its state, and how to fix it."""
    lines = lamina.shell(lamina.command("lamina doctor") + " --all || test $? = 1").splitlines()
    return "\n".join(line for line in lines if line.startswith(what))


def admits(cluster: RealCluster) -> bool:
    """Whether admission answers, as a pod with nonsense in it shows; nothing is made."""
    try:
        cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=pod("asked", limits=NONSENSE))
    except Unavailable as refused:
        return "gpucores" in str(refused)
    return False


def waiting(cluster: RealCluster, name: str) -> str:
    """Why the pod's containers do not start."""
    statuses = got(cluster, name)["status"].get("containerStatuses", [])
    return " ".join(str(each["state"].get("waiting", {}).get("message", "")) for each in statuses)


def leader(cluster: RealCluster) -> Object:
    """The pod of the controller that leads; waits for one."""
    found: list[Object] = []

    def leads() -> bool:
        found[:] = [each for each in parts(cluster, "controller") if _leads(each)]
        return len(found) == 1

    wait_until(leads, lambda: cluster.kubectl("get", "pods", "-n", NAMESPACE, "--show-labels"))
    return found[0]


def _leads(replica: Object) -> bool:
    return bool(replica["metadata"]["labels"].get("lamina.dev/leader") == "true" and _ready(replica))


Held = dict[str, dict[str, int]]
"""By pod, the MiB of each GPU."""


def granted(cluster: RealCluster) -> Held:
    grants = [each["spec"] for each in listed(cluster, "grants")]
    return {spec["pod"]: _shares(spec["containers"]) for spec in grants}


def _shares(containers: list[Any]) -> dict[str, int]:
    return {share["gpu"]: share["memoryMiB"] for each in containers for share in each["shares"]}


TELLS = "nvidia-smi --query-gpu=uuid,memory.total --format=csv,noheader,nounits; sleep infinity"
"""A command by which a container prints what it sees of GPUs."""


def held(cluster: RealCluster, app: str) -> Held:
    """What the containers of pods with this label printed by `TELLS`."""
    found: Held = {}
    for line in cluster.kubectl("logs", "-l", f"app={app}", "--prefix", "--max-log-requests=100").splitlines():
        where, gpu, mib = line.replace(",", "").split()
        found.setdefault(where.split("/")[1], {})[gpu] = int(mib)
    return found


def totals(held: Held) -> dict[str, int]:
    """The MiB given of each GPU, by all pods together."""
    found: dict[str, int] = {}
    for shares in held.values():
        for gpu, mib in shares.items():
            found[gpu] = found.get(gpu, 0) + mib
    return found
