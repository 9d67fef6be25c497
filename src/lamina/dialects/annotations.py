"""Annotations by which a pod chooses GPUs, policies and the way of sharing: HAMi's, and Volcano's for the same."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lamina.dialects.chart import SCHEDULE_POLICY
from lamina.dialects.config import Config
from lamina.dialects.strict import nearest
from lamina.errors import BadInput
from lamina.model.gpus import Mode
from lamina.model.policies import GPU_POLICIES, MUTEX, NODE_POLICIES, chain
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

VOLCANO_USE_UUID = "volcano.sh/vgpu-use-gpuuuid"
VOLCANO_NOT_UUID = "volcano.sh/vgpu-nouse-gpuuuid"
VOLCANO_MODE = "volcano.sh/vgpu-mode"
VOLCANO_POLICY = SCHEDULE_POLICY

COUNTS = "lamina.dev/counts-gpus"
"""Admission's mark on a pod that named GPUs by count alone, to which it added cores. Who sets it by hand only says that
a GPU without any share of it would do."""

_WISHES = (USE_TYPE, NOT_TYPE, USE_UUID, NOT_UUID, VOLCANO_USE_UUID, VOLCANO_NOT_UUID)
_WISH_PREFIXES = ("nvidia.com/use-", "nvidia.com/nouse-", "volcano.sh/vgpu-use-", "volcano.sh/vgpu-nouse-")
_MODES = {"hami-core": Mode.QUOTA, "mig": Mode.MIG}
_NOT_OFFERED = "mps"
"""A mode of the peers that may stand in a list beside others."""


class Choices(NamedTuple):
    """What the annotations of a pod choose; policies are always named."""

    wishes: Wishes
    node_policy: str
    gpu_policy: str
    numa_bind: bool


def read(annotations: Mapping[str, str], config: Config) -> Choices:
    """The pod's choices. Raises BadInput for a choice that cannot be honoured: it would be lost silently."""
    for key in annotations:
        if key.startswith(_WISH_PREFIXES) and key not in _WISHES:
            raise BadInput(f"unknown annotation {key}{nearest(key, _WISHES)}")
    if annotations.get(WEIGHTS, "").strip():
        raise BadInput(f"annotation {WEIGHTS}: weights per pod are not offered; remove it")
    gpu_policy = _policy(annotations, GPU_POLICY, GPU_POLICIES, config.hami.gpu_scheduler_policy)
    return Choices(
        Wishes(
            types=items(annotations.get(USE_TYPE, "")),
            not_types=items(annotations.get(NOT_TYPE, "")),
            uuids=_either(annotations, USE_UUID, VOLCANO_USE_UUID),
            not_uuids=items(annotations.get(NOT_UUID, "")) + items(annotations.get(VOLCANO_NOT_UUID, "")),
            idle=MUTEX in chain(gpu_policy),
            modes=_modes(annotations),
        ),
        _policy(annotations, NODE_POLICY, NODE_POLICIES, config.hami.node_scheduler_policy),
        gpu_policy,
        _switch(annotations, NUMA_BIND),
    )


def items(text: str) -> tuple[str, ...]:
    """The items of a list with commas."""
    return tuple(item for part in text.split(",") if (item := part.strip()))


def _either(annotations: Mapping[str, str], ours: str, volcanos: str) -> tuple[str, ...]:
    """The list of one of two keys that mean the same; both are fine where they agree."""
    lists = {named for key in (ours, volcanos) if (named := items(annotations.get(key, "")))}
    if len(lists) > 1:
        raise BadInput(f"annotations {ours} and {volcanos} name different GPUs; keep one of them")
    return lists.pop() if lists else ()


def _policy(annotations: Mapping[str, str], key: str, allowed: Sequence[str], common: str) -> str:
    """What the annotation names, else Volcano's one name for nodes and GPUs, else what the cluster has in common."""
    named = next((each for each in (key, VOLCANO_POLICY) if annotations.get(each, "").strip()), "")
    policy = annotations[named].strip() if named else common
    several = chain(policy) if allowed is GPU_POLICIES else (policy,)
    if not set(several) <= set(allowed):
        raise BadInput(f"annotation {named} is {policy!r}; allowed is {' or '.join(allowed)}")
    return ",".join(several)


def _switch(annotations: Mapping[str, str], key: str) -> bool:
    written = annotations.get(key, "").strip().lower()
    if written not in ("", "true", "t", "1", "false", "f", "0"):
        raise BadInput(f"annotation {key} is {written!r}; allowed is true or false")
    return written in ("true", "t", "1")


def _modes(annotations: Mapping[str, str]) -> tuple[Mode, ...]:
    """The modes that the pod accepts, by HAMi's or Volcano's key, which have to agree; empty for all."""
    named = {}
    for key in (MODE, VOLCANO_MODE):
        modes = items(annotations.get(key, ""))
        unknown = next((mode for mode in modes if mode not in _MODES and mode != _NOT_OFFERED), None)
        if unknown is not None:
            raise BadInput(f"annotation {key} is {unknown!r}; allowed is {' or '.join(_MODES)}")
        offered = frozenset(_MODES[mode] for mode in modes if mode in _MODES)
        if modes and not offered:
            raise BadInput(f"annotation {key}: the mode {modes[0]} is not offered; allowed is {' or '.join(_MODES)}")
        if offered:
            named[key] = offered
    if len(set(named.values())) > 1:
        raise BadInput(f"annotations {MODE} and {VOLCANO_MODE} name different modes; keep one of them")
    return tuple(sorted(next(iter(named.values()), ())))
