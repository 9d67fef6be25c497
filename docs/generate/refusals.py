"""The page of refusals: what admission, the configuration and the lab answer to typical mistakes."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from docs.generate.markdown import code, page, table
from lamina.admission.review import review
from lamina.configuration import DEFAULT, load
from lamina.errors import BadInput

_SOURCE = "what the code answers"
_INTRODUCTION = """
A pod with a mistake is refused at admission, a configuration with a mistake leaves the previous one in force, and a
command ends with exit code 2 before it has done anything. Each refusal is one sentence: what is wrong, where, and what
to do.
"""
_NOTE = """
More memory than any GPU has is not a mistake, because a larger node may come: such a pod waits, and [`lamina
why`](messages.md) says so.
"""


def _kai(**annotations: str) -> Mapping[str, Any]:
    """The rest of a pod that requests by annotations."""
    return {"metadata": {"annotations": annotations}, "spec": {"schedulerName": "kai-scheduler"}}


_PODS: tuple[tuple[str, Mapping[str, Any], Mapping[str, Any]], ...] = (
    ("gpumem: -1", {"nvidia.com/gpumem": -1}, {}),
    ("gpumem: 10Gi", {"nvidia.com/gpumem": "10Gi"}, {}),
    ("gpumem-percentage: 101", {"nvidia.com/gpumem-percentage": 101}, {}),
    ("gpumem and gpumem-percentage", {"nvidia.com/gpumem": 1000, "nvidia.com/gpumem-percentage": 10}, {}),
    ("nvidia.com/gpucore: 10", {"nvidia.com/gpu": 1, "nvidia.com/gpucore": 10}, {}),
    ("aliyun.com/gpu-mem next to gpumem", {"nvidia.com/gpumem": 1000, "aliyun.com/gpu-mem": 3}, {}),
    ("gpumem and vgpu-memory", {"nvidia.com/gpumem": 1000, "volcano.sh/vgpu-memory": 1000}, {}),
    ("priority: 0 alone", {"nvidia.com/priority": 0}, {}),
    ("gpu-core.percentage: 12", {"volcano.sh/gpu-mem.128Mi": 8, "volcano.sh/gpu-core.percentage": 12}, {}),
    ("nodeName: node-0", {"nvidia.com/gpumem": 1000}, {"spec": {"nodeName": "node-0"}}),
    ("a privileged container", {"nvidia.com/gpumem": 1000}, {"container": {"securityContext": {"privileged": True}}}),
    ("a limit of 2000 and a request of 1000", {"nvidia.com/gpumem": 2000},
     {"container": {"resources": {"limits": {"nvidia.com/gpumem": 2000}, "requests": {"nvidia.com/gpumem": 1000}}}}),
    ("gpu-scheduler-policy: sprad", {"nvidia.com/gpumem": 1000},
     {"metadata": {"annotations": {"hami.io/gpu-scheduler-policy": "sprad"}}}),
    ("gpu-fraction: 1.5", {}, _kai(**{"gpu-fraction": "1.5"})),
    ("gpu-fraction and gpu-memory", {}, _kai(**{"gpu-fraction": "0.5", "gpu-memory": "2000"})),
    ("gpu-fraction and nvidia.com/gpu", {"nvidia.com/gpu": 1}, _kai(**{"gpu-fraction": "0.5"})),
    ("gpu-compute-sharing-mode: mps", {},
     _kai(**{"gpu-memory": "2000", "kai.scheduler/gpu-compute-sharing-mode": "mps"})),
    ("vgpu-mode: mpss", {"nvidia.com/gpumem": 1000}, {"metadata": {"annotations": {"nvidia.com/vgpu-mode": "mpss"}}}),
)  # fmt: skip
_CONFIGURATIONS = (
    "scheduler: {defaultMemory: 5000}",
    "hami: {deviceSplitCount: 0}",
    "hami: {deviceSplitCont: 5}",
    "hami: {enableNumaTopology: true}",
    "hami: {knownMigGeometries: [{models: [A30], allowedGeometries: [[{name: 1g.5gb, count: 7}]]}]}",
)


def pages() -> Iterator[tuple[str, str]]:
    head = ("input", "answer")
    pods = [(code(what), _pod(limits, more)) for what, limits, more in _PODS]
    configurations = [(code(text), _refused(partial(load, text, "FILE"))) for text in _CONFIGURATIONS]
    yield "refusals.md", page(
        "Refusals", _SOURCE, _INTRODUCTION, "## Pods", table(head, pods), _NOTE,
        "## Configuration", table(head, configurations),
    )  # fmt: skip


def _pod(limits: Mapping[str, Any], more: Mapping[str, Any]) -> str:
    container = {"name": "main", "resources": {"limits": dict(limits)}} | dict(more.get("container", {}))
    pod = {"metadata": {"name": "p"} | dict(more.get("metadata", {})),
           "spec": {"containers": [container]} | dict(more.get("spec", {}))}  # fmt: skip
    verdict, _ = review(pod, DEFAULT)
    assert not verdict.allowed, f"{limits} is not refused"
    return verdict.message


def _refused(call: Callable[[], Any]) -> str:
    try:
        call()
    except BadInput as problem:
        return str(problem)
    raise AssertionError("the configuration is not refused")
