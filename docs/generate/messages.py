"""The page of scheduling messages: what placement answers about small clusters that each lack one thing."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from docs.generate.markdown import code, page, table
from lamina.configuration import DEFAULT
from lamina.controller.gangs import coordinator, records
from lamina.core.gpus import Gpu
from lamina.core.ledger import Taken
from lamina.core.quota_room import QuotaLimit, QuotaRoom
from lamina.dialects import parse
from lamina.group_plans import planner
from lamina.placement import Cause, NodeState, explain
from lamina.placement.explanation.summary import COUNTED
from lamina.report.pod_answers import MEANINGS

_SOURCE = "src/lamina/placement, src/lamina/group_plans and src/lamina/controller/gangs"
_INTRODUCTION = """
The events of a pending pod, its `PodScheduled` condition and `lamina why POD` say the same. The first line is the
nearest miss; with several nodes, lines for each group of nodes with the same reason follow. The examples are about a
node with two V100 of 32768 MiB.
"""
_FOR_PROGRAMS = """
`lamina why -o json` has an entry in `pods` for the pod, or for each reason of a workload's pods, with these fields:
`pod`, `cause`, `nodes`, `nearest`, `waysOut` and `lines`. `nodes` are those that do not fit, nearest miss first; those
with the same reason are one entry with `nodes`, `cause`, `needed`, `free`, `unit`, `lasting` and `reason`. What is not
an amount has `null` there. `nearest` is the first of them with the one node that misses by the least. Causes are words
of these tables, which stay; sentences may change.
"""
_MODEL = "Tesla V100-SXM2-32GB"
_FULL = {"GPU-0": Taken(3, 30000, 30), "GPU-1": Taken(3, 30000, 30)}
_SLOTS = {f"GPU-{index}": Taken(10, 1000, 0) for index in (0, 1)}
_BUSY = {f"GPU-{index}": Taken(1, 1000, 60) for index in (0, 1)}
_TIME = {f"GPU-{index}": Taken(2, 2000, 100) for index in (0, 1)}
_QUOTA = QuotaLimit("team", "nvidia.com/gpumem", hard=10000, used=2000)
_WHOLE = {f"GPU-{index}": Taken(1, 32768, 100, True) for index in (0, 1)}


class Case(NamedTuple):
    """A pod, what is taken of the node's GPUs, and what would help."""

    help: str
    limits: Mapping[str, Any]
    taken: Mapping[str, Taken] = {}
    annotations: Mapping[str, str] = {}
    gpu: Mapping[str, Any] = {}
    gpus: int = 2
    numa: bool = False
    """Whether each GPU is on a NUMA node of its own."""
    room: QuotaRoom | None = None
    """What quotas leave."""


def _share(**rest: int) -> dict[str, int]:
    return {"nvidia.com/gpu": 1} | {f"nvidia.com/{name}": value for name, value in rest.items()}


_CASES = (
    Case("a pod that ends, or a smaller request", _share(gpumem=10000), _FULL),
    Case("only another card", _share(gpumem=900000)),
    Case("a pod that ends, or fewer `gpucores`", _share(gpumem=1000, gpucores=60), _BUSY),
    Case("a compute share in this pod, or a pod that ends", _share(gpumem=1000), _TIME),
    Case("a larger `sharing.slots`, or a pod that ends", _share(gpumem=1000), _SLOTS),
    Case("a GPU without any share", _share(), _FULL),
    Case("a pod that ends", _share(gpumem=1000), _WHOLE),
    Case("a GPU without any share (`mutex`)", _share(gpumem=1000), _FULL, {"hami.io/gpu-scheduler-policy": "mutex"}),
    Case("`lamina uncordon gpu`", _share(gpumem=1000), gpu={"cordoned": True}),
    Case("[health](../how-to/maintain-gpus.md#unhealthy-gpus)", _share(gpumem=1000),
         gpu={"healthy": False, "reason": "the driver reported XID 79"}),
    Case("another `use-gputype`, or such a node", _share(gpumem=1000), annotations={"nvidia.com/use-gputype": "A100"}),
    Case("another `use-gpuuuid`", _share(gpumem=1000), annotations={"nvidia.com/use-gpuuuid": "GPU-9"}),
    Case("fewer GPUs, or a larger node", {"nvidia.com/gpu": 3, "nvidia.com/gpumem": 1000}),
    Case("room on one more GPU of the node", {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 10000},
         {"GPU-1": Taken(3, 30000, 30)}),
    Case("a node that allows the mode, or another annotation", _share(gpumem=1000),
         annotations={"nvidia.com/vgpu-mode": "mig"}),
    Case("room on two GPUs of one NUMA node, or no `numa-bind`", {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 1000},
         annotations={"nvidia.com/numa-bind": "true"}, numa=True),
    Case("a pod of the namespace that ends, a larger quota, or a node with smaller GPUs",
         {"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 50}, room=QuotaRoom(_QUOTA)),
    Case("agents on the node, or another `nodeSelector`", _share(gpumem=1000), gpus=0),
)  # fmt: skip
_GANGS = {
    "waits for its members: N of N exist": "the rest of the pods",
    "waits for its members: N of N are ready": "nothing here; the others lack something that Lamina does not place",
    "is placed completely": "pods that end, or smaller members",
    "has N kinds of members": "members with equal requests and equal node selection",
    "is too large": "fewer members, or members that are more alike",
    "gave up": "the other members, which were not ready in time; it starts again by itself",
    "is placed in part": "a pod that ends; a binding failed, a member ended, or the controller was restarted",
}
"""What would help a pod group, by how the message goes on after the group's name."""


def pages() -> Iterator[tuple[str, str]]:
    head = ("message", "what would help")
    nodes = table(head, ((sentence(case), case.help) for case in _CASES))
    groups = table(head, _groups())
    of_pods = table(
        ("cause of a pod", "what keeps it from running"), ((code(each), MEANINGS[each]) for each in MEANINGS)
    )
    of_nodes = table(("cause of nodes", "nodes are counted as"), ((code(each.word), COUNTED[each]) for each in Cause))
    yield "messages.md", page(
        "Scheduling messages", _SOURCE, _INTRODUCTION, "## A pod", nodes, "## A pod group",
        "N stands for a number, and each message begins with `pod group NAMESPACE/NAME`.", groups,
        "## For programs", _FOR_PROGRAMS, of_pods, of_nodes,
    )  # fmt: skip


def sentence(case: Case) -> str:
    """What placement says of the case."""
    gpus = tuple(_gpu(case, index) for index in range(case.gpus))
    container = {"name": "main", "resources": {"limits": dict(case.limits)}}
    pod = {"metadata": {"annotations": dict(case.annotations)}, "spec": {"containers": [container]}}
    request = parse(pod, DEFAULT)
    assert request is not None
    (group,) = explain(request.within(case.room), [NodeState.of("node-0", gpus, dict(case.taken))]).groups
    return group.reason


def _gpu(case: Case, index: int) -> Gpu:
    own: dict[str, Any] = {"uuid": f"GPU-{index}", "index": index, "numa": index if case.numa else None, **case.gpu}
    return Gpu(model=_MODEL, memory_mib=32768, capacity_mib=32768, **own)


def _groups() -> Iterator[tuple[str, str]]:
    for message in sorted({text for module in (planner, coordinator, records) for text in _texts(module)}):
        hints = [hint for start, hint in _GANGS.items() if message.startswith(start)]
        assert len(hints) == 1, f"say in docs/generate/messages.py what helps where a pod group {message}"
        yield f"... {message}", hints[0]


def _texts(module: Any) -> Iterator[str]:
    """The texts of a module that begin with a group's name, with N for each number in them."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.JoinedStr) and ast.unparse(node).startswith(("f'{name} ", 'f"{name} ')):
            parts = [part.value if isinstance(part, ast.Constant) else "N" for part in node.values]
            yield re.sub(r"\s+", " ", "".join(map(str, parts))).removeprefix("N ")
