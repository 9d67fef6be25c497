"""HAMi's annotations by which a pod chooses GPUs, policies and the way of sharing."""

from collections.abc import Mapping
from typing import NamedTuple

from lamina.dialects.config import Config
from lamina.dialects.strict import nearest
from lamina.errors import BadInput
from lamina.model.requests import Wishes

USE_TYPE = "nvidia.com/use-gputype"
NOT_TYPE = "nvidia.com/nouse-gputype"
USE_UUID = "nvidia.com/use-gpuuuid"
NOT_UUID = "nvidia.com/nouse-gpuuuid"
MODE = "nvidia.com/vgpu-mode"
NUMA_BIND = "nvidia.com/numa-bind"
NODE_POLICY = "hami.io/node-scheduler-policy"
GPU_POLICY = "hami.io/gpu-scheduler-policy"
WEIGHTS = "hami.io/device-scoring-weights"

POLICIES = ("binpack", "spread")
_WISHES = (USE_TYPE, NOT_TYPE, USE_UUID, NOT_UUID)
_MODES = ("hami-core", "mig", "mps")


class Choices(NamedTuple):
    """What the annotations of a pod choose; policies are always named."""

    wishes: Wishes
    node_policy: str
    gpu_policy: str


def read(annotations: Mapping[str, str], config: Config) -> Choices:
    """The pod's choices. Raises BadInput for a choice that cannot be honoured: it would be lost silently."""
    for key in annotations:
        if key.startswith(("nvidia.com/use-", "nvidia.com/nouse-")) and key not in _WISHES:
            raise BadInput(f"unknown annotation {key}{nearest(key, _WISHES)}")
    _check_mode(annotations.get(MODE, ""))
    if annotations.get(NUMA_BIND, "").strip().lower() in ("true", "t", "1"):
        raise BadInput(f"annotation {NUMA_BIND}: binding to one NUMA node is not offered; remove it or set it to false")
    if annotations.get(WEIGHTS, "").strip():
        raise BadInput(f"annotation {WEIGHTS}: weights per pod are not offered; remove it")
    return Choices(
        Wishes(
            types=_items(annotations.get(USE_TYPE, "")),
            not_types=_items(annotations.get(NOT_TYPE, "")),
            uuids=_items(annotations.get(USE_UUID, "")),
            not_uuids=_items(annotations.get(NOT_UUID, "")),
        ),
        _policy(annotations, NODE_POLICY, config.hami.node_scheduler_policy),
        _policy(annotations, GPU_POLICY, config.hami.gpu_scheduler_policy),
    )


def _items(text: str) -> tuple[str, ...]:
    return tuple(item for part in text.split(",") if (item := part.strip()))


def _policy(annotations: Mapping[str, str], key: str, common: str) -> str:
    policy = annotations.get(key, "").strip() or common
    if policy not in POLICIES:
        raise BadInput(f"annotation {key} is {policy!r}; allowed is {' or '.join(POLICIES)}")
    return policy


def _check_mode(text: str) -> None:
    modes = _items(text)
    unknown = next((mode for mode in modes if mode not in _MODES), None)
    if unknown is not None:
        raise BadInput(f"annotation {MODE} is {unknown!r}; allowed is hami-core")
    if modes and "hami-core" not in modes:
        raise BadInput(f"annotation {MODE}: the mode {modes[0]} is not offered; allowed is hami-core")
