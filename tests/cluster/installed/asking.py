"""Asking a stage about an installation."""

import json
from typing import Any

from tests.cluster.asking import Object, got, pod, until
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.installation import Installation
from tests.cluster.stage.stage import Stage

NAMESPACE = "lamina-system"
ROLLOUT_S = 180.0
"""A fair machine takes a quarter of it."""
SHARE = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}
SEEN = "0MiB /  3000MiB"
TICKETS = 20
"""What a node offers of nvidia.com/gpu: ten for each of its two GPUs."""
NONSENSE = {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 101}


def listed(stage: Stage, *words: str) -> list[Object]:
    found: list[Object] = json.loads(stage.kubectl("get", *words, "-o", "json"))["items"]
    return found


def parts(stage: Stage, part: str = "") -> list[Object]:
    """The pods of an installation, or those of one part."""
    chosen = ["-l", f"app.kubernetes.io/component={part}"] if part else []
    return listed(stage, "pods", "-n", NAMESPACE, *chosen)


def _ready(of: Object) -> bool:
    conditions = of["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def whole(stage: Stage) -> None:
    """Wait until each part has all its pods, all of them ready."""

    def all_ready() -> bool:
        kinds = listed(stage, "deployments,daemonsets", "-n", NAMESPACE)
        wanted = {each["metadata"]["name"]: _replicas(each) for each in kinds}
        present = {name: [*map(_ready, parts(stage, name.removeprefix("lamina-")))] for name in wanted}
        return len(wanted) == 3 and all(present[name] == [True] * wanted[name] for name in wanted)

    until(all_ready, lambda: stage.kubectl("describe", "pods", "-n", NAMESPACE), ROLLOUT_S)


def _replicas(owner: Object) -> int:
    return int(owner["spec"].get("replicas") or owner["status"].get("desiredNumberScheduled", 0))


def serves(stage: Stage, node: str) -> None:
    """Wait until the node offers GPUs, and admission answers."""
    until(lambda: amount(stage, node) == TICKETS, lambda: stage.kubectl("describe", "node", node))
    until(lambda: admits(stage), lambda: "admission lets nonsense pass, or does not answer")


def amount(stage: Stage, node: str) -> int:
    return int(stage.kubectl("get", "node", node, "-o", r"jsonpath={.status.allocatable.nvidia\.com/gpu}") or 0)


def rolled_out(stage: Stage, what: str) -> None:
    """Wait until all pods of it are of its newest template."""
    stage.kubectl("rollout", "status", "-n", NAMESPACE, what, f"--timeout={ROLLOUT_S - 10}s", timeout=ROLLOUT_S)


def told(lamina: Installation, what: str) -> str:
    """All that the doctor says of one thing: how it is, and how to mend it."""
    lines = lamina.shell(lamina.command("lamina doctor") + " || test $? = 1").splitlines()
    return "\n".join(line for line in lines if line.startswith(what))


def admits(stage: Stage) -> bool:
    """Whether admission answers, as a pod with nonsense in it shows; nothing is made."""
    try:
        stage.kubectl("create", "--dry-run=server", "-f", "-", stdin=pod("asked", limits=NONSENSE))
    except Unavailable as refused:
        return "gpucores" in str(refused)
    return False


def waiting(stage: Stage, name: str) -> str:
    """Why the pod's containers do not start."""
    statuses = got(stage, name)["status"].get("containerStatuses", [])
    return " ".join(str(each["state"].get("waiting", {}).get("message", "")) for each in statuses)


def leader(stage: Stage) -> Object:
    """The pod of the control part that leads; waits for one."""
    found: list[Object] = []

    def leads() -> bool:
        found[:] = [each for each in parts(stage, "control") if _leads(each)]
        return len(found) == 1

    until(leads, lambda: stage.kubectl("get", "pods", "-n", NAMESPACE, "--show-labels"))
    return found[0]


def _leads(replica: Object) -> bool:
    return bool(replica["metadata"]["labels"].get("lamina.dev/leader") == "true" and _ready(replica))


Held = dict[str, dict[str, int]]
"""By pod, the MiB of each GPU."""


def granted(stage: Stage) -> Held:
    grants = [each["spec"] for each in listed(stage, "grants")]
    return {spec["pod"]: _shares(spec["containers"]) for spec in grants}


def _shares(containers: list[Any]) -> dict[str, int]:
    return {share["gpu"]: share["memoryMiB"] for each in containers for share in each["shares"]}


TELLS = "nvidia-smi --query-gpu=uuid,memory.total --format=csv,noheader,nounits; sleep infinity"
"""A command by which a container prints what it sees of GPUs."""


def held(stage: Stage, app: str) -> Held:
    """What the containers of pods with this label printed by `TELLS`."""
    found: Held = {}
    for line in stage.kubectl("logs", "-l", f"app={app}", "--prefix", "--max-log-requests=100").splitlines():
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
