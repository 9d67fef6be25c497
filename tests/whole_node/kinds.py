"""What people ask for and how they set nodes up, in all vocabularies and modes."""

import json
from typing import Any, NamedTuple

NODE = "node-1"
FILE_LABEL, MIG_LABEL = "nvidia.com/device-plugin.config", "nvidia.com/mig.config"


def _shared(count: int, **more: Any) -> dict[str, Any]:
    return {"resources": [{"name": "nvidia.com/gpu", "replicas": count}], **more}


FILES: dict[str, Any] = {
    "whole": {"version": "v1"},
    "sliced": {"version": "v1", "sharing": {"timeSlicing": _shared(4)}},
    "renamed": {"version": "v1", "sharing": {"timeSlicing": _shared(3, renameByDefault=True)}},
    "mps": {"version": "v1", "sharing": {"mps": _shared(4)}},
    "mps-2": {"version": "v1", "sharing": {"mps": _shared(2)}},
    "mixed": {"version": "v1", "flags": {"migStrategy": "mixed"}},
}
"""NVIDIA's files, which the node's label names."""
FILE_NAMES = ("", "", "", *FILES)
LAYOUTS = ("", "all-disabled", "all-1g.5gb", "all-balanced", "all-3g.20gb")
"""What the label for MIG names; empty is no label."""
POLICIES: dict[str, dict[str, Any]] = {
    "default": {},
    "either": {"sharing": {"modes": ["quota", "mig"]}},
    "mig first": {"sharing": {"modes": ["mig", "quota"]}},
    "mig alone": {"sharing": {"modes": ["mig"]}},
    "mps first": {"sharing": {"modes": ["mps", "quota"]}},
    "mps alone": {"sharing": {"modes": ["mps"]}},
    "any": {"sharing": {"modes": ["quota", "mps", "mig"]}},
    "mixed": {"hami": {"migStrategy": "mixed"}},
    "single": {"hami": {"migStrategy": "single"}},
    "either, mixed": {"sharing": {"modes": ["quota", "mig"]}, "hami": {"migStrategy": "mixed"}},
    "equal": {"nativeDevices": {"replicaMemory": "equal", "timeSlice": "short"}},
    "off": {"enabled": False},
}

MIG_POLICIES = ("either", "mig first", "mig alone", "any", "either, mixed")
"""Those under which GPUs may be partitioned on demand."""


def text_of(policy: str) -> str:
    """Lamina's configuration under a policy."""
    written = POLICIES[policy]
    return json.dumps({**written, "nativeDevices": {**written.get("nativeDevices", {}), "configs": FILES}})


def _pod(*containers: dict[str, Any], **meta: Any) -> dict[str, Any]:
    named = [{"name": f"c{number}", "resources": {"limits": each}} for number, each in enumerate(containers)]
    return {"metadata": meta, "spec": {"containers": named}}


def _gpu(count: int = 1, **amounts: int) -> dict[str, Any]:
    return {"nvidia.com/gpu": str(count), **{f"nvidia.com/{key}": str(value) for key, value in amounts.items()}}


def _vgpu(**amounts: int) -> dict[str, Any]:
    return {f"volcano.sh/vgpu-{key}": str(value) for key, value in amounts.items()}


def _units(memory: int, cores: int) -> dict[str, Any]:
    return {"volcano.sh/gpu-mem.128Mi": str(memory), "volcano.sh/gpu-core.percentage": str(cores)}


def _with_init(pod: dict[str, Any], limits: dict[str, Any]) -> dict[str, Any]:
    pod["spec"]["initContainers"] = [{"name": "init", "resources": {"limits": limits}}]
    return pod


PODS: dict[str, dict[str, Any]] = {
    "a GPU": _pod(_gpu()),
    "two GPUs": _pod(_gpu(2)),
    "a replica": _pod({"nvidia.com/gpu.shared": "1"}),
    "small": _pod(_gpu(gpumem=4000)),
    "timed": _pod(_gpu(gpumem=9000, gpucores=40)),
    "elastic": _pod(
        _gpu(gpumem=6000, gpucores=20),
        annotations={"lamina.dev/gpumem-limit": "20000", "lamina.dev/gpucores-limit": "60"},
    ),
    "over two": _pod(_gpu(2, gpumem=15000, gpucores=30)),
    "two containers": _pod(_gpu(gpumem=3000), _gpu(gpumem=8000)),
    "after init": _with_init(_pod(_gpu(gpumem=5000)), _gpu(gpumem=9000)),
    "vgpu": _pod(_vgpu(number=1, memory=9000, cores=25)),
    "vgpu, mig": _pod(_vgpu(number=1, memory=4000), annotations={"volcano.sh/vgpu-mode": "mig"}),
    "vgpu, hami-core": _pod(_vgpu(number=1, memory=4000), annotations={"volcano.sh/vgpu-mode": "hami-core"}),
    "vgpu, mps": _pod(_vgpu(number=1, memory=4000, cores=30), annotations={"volcano.sh/vgpu-mode": "mps"}),
    "small, mps": _pod(_gpu(gpumem=3000), annotations={"nvidia.com/vgpu-mode": "mps"}),
    "units": _pod({"volcano.sh/gpu-mem.128Mi": "40"}),
    "timed units": _pod(_units(80, 50)),
    "units of two": _pod(_units(80, 50), labels={"volcano.sh/gpu-num": "2"}),
    "1g.5gb": _pod({"nvidia.com/mig-1g.5gb": "1"}),
    "3g.20gb": _pod({"nvidia.com/mig-3g.20gb": "1"}),
    "1g.5gb and 2g.10gb": _pod({"nvidia.com/mig-1g.5gb": "1", "nvidia.com/mig-2g.10gb": "1"}),
}


class Setup(NamedTuple):
    """How a node may be set up and what people ask of it then."""

    policy: str
    file: str
    layout: str
    pods: tuple[str, ...]


_SHARES = (
    "small",
    "timed",
    "elastic",
    "over two",
    "two containers",
    "after init",
    "vgpu",
    "units",
    "timed units",
    "units of two",
)
SETUPS = {
    "shares": Setup("default", "", "", (*_SHARES, "a GPU", "two GPUs", "vgpu, hami-core")),
    "either": Setup("either", "", "", (*_SHARES, "vgpu, mig", "vgpu, hami-core", "a GPU")),
    "mig first": Setup("mig first", "", "", (*_SHARES, "vgpu, mig", "vgpu, hami-core")),
    "mig alone": Setup("mig alone", "", "", (*_SHARES, "vgpu, mig")),
    "mps first": Setup("mps first", "", "", (*_SHARES, "vgpu, mps", "vgpu, hami-core", "a GPU")),
    "mps alone": Setup("mps alone", "", "", ("small", "timed", "vgpu, mps", "small, mps", "a GPU", "after init")),
    "mps or any": Setup("any", "", "", (*_SHARES, "vgpu, mps", "vgpu, mig", "small, mps")),
    "mps": Setup("default", "mps", "", ("a GPU",)),
    "mps of two": Setup("equal", "mps-2", "", ("a GPU",)),
    "sliced": Setup("equal", "sliced", "", ("a GPU", "two GPUs")),
    "renamed": Setup("default", "renamed", "", ("a replica",)),
    "whole": Setup("default", "whole", "", ("a GPU", "two GPUs")),
    "label": Setup("mixed", "mixed", "all-balanced", ("1g.5gb", "3g.20gb", "1g.5gb and 2g.10gb")),
}
