"""Whose a resource name is: ours, another GPU-sharing vocabulary's, or none of our business.

A name that looks like ours and is not (`nvidia.com/gpu-mem`) is refused with the nearest known one: a silently ignored
limit would be a GPU without limit. Other systems keep resources under the same prefix; `otherResources` lists them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from lamina.dialects.config import Config
from lamina.dialects.strict import closest
from lamina.errors import BadInput

SERVED = "served here is hami (nvidia.com/gpu, gpumem, gpumem-percentage, gpucores, priority)"
_VOCABULARIES = {
    "volcano": re.compile(r"volcano\.sh/(vgpu-|gpu-memory$|gpu-number$).*"),
    "cce": re.compile(r"volcano\.sh/gpu-(mem\.128Mi|core\.percentage)"),
    "gpushare": re.compile(r"aliyun\.com/gpu-.*"),
    "gpu-manager": re.compile(r"tencent\.com/vcuda-.*"),
}
_PLAIN_GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class ResourceNames:
    """The names under which containers ask for shares, as configured."""

    count: str
    memory: str
    memory_percentage: str
    cores: str
    priority: str

    @property
    def ignored_by_scheduler(self) -> tuple[str, ...]:
        """Names that kube-scheduler must not look for on nodes: kubelet knows the count alone."""
        return (self.memory, self.memory_percentage, self.cores, self.priority)

    @property
    def all(self) -> tuple[str, ...]:
        """Every name of ours, the count first."""
        return (self.count, *self.ignored_by_scheduler)


def resource_names(config: Config) -> ResourceNames:
    """All resource names that belong to us under this configuration."""
    hami = config.hami
    return ResourceNames(
        hami.resource_count_name,
        hami.resource_memory_name,
        hami.resource_memory_percentage_name,
        hami.resource_core_name,
        hami.resource_priority_name,
    )


def asked_by(container: Mapping[str, object]) -> dict[str, object]:
    """What the container asks, by resource name: a limit goes before a request, as HAMi reads them."""
    resources = container.get("resources") or {}
    if not isinstance(resources, Mapping):
        raise BadInput(f"container {container.get('name')}: resources is {resources!r}; allowed is limits and requests")
    asked: dict[str, object] = {}
    for field in ("requests", "limits"):
        named = resources.get(field) or {}
        if not isinstance(named, Mapping):
            raise BadInput(f"container {container.get('name')}: {field} is {named!r}; allowed is names with amounts")
        asked.update(named)
    return asked


def check_vocabulary(asked: Iterable[str], config: Config) -> bool:
    """Whether a pod that asks these resources is ours. Raises BadInput for mixed, unserved and unknown names."""
    names = resource_names(config)
    asked = sorted(set(asked))
    ours = [name for name in asked if name in names.all]
    for name in asked:
        vocabulary = _foreign_vocabulary(name, names)
        if vocabulary and ours:
            raise BadInput(f"the pod mixes {ours[0]} with {name} of the {vocabulary} vocabulary; use one of the two")
        if vocabulary and vocabulary != "nvidia":
            raise BadInput(f"{name} belongs to the {vocabulary} vocabulary, which is not served; {SERVED}")
        if not vocabulary and name not in names.all and _looks_like_ours(name, names, config):
            raise BadInput(f"unknown resource {name}{_hint(name, names)}")
    return bool(ours)


def _hint(name: str, names: ResourceNames) -> str:
    """The likeness is that of the parts after the slash: the prefix is the same for all."""
    parts = {known.partition("/")[2]: known for known in names.all}
    near = closest(name.partition("/")[2], parts)
    return f"; did you mean {parts[near]}?" if near else f"; known are {', '.join(names.all)}"


def _foreign_vocabulary(name: str, names: ResourceNames) -> str:
    """The vocabulary of other GPU sharing that the name belongs to, or nothing."""
    if name in names.all:
        return ""
    if name == _PLAIN_GPU:
        return "nvidia"
    return next((vocabulary for vocabulary, form in _VOCABULARIES.items() if form.fullmatch(name)), "")


def _looks_like_ours(name: str, names: ResourceNames, config: Config) -> bool:
    prefixes = {ours.partition("/")[0] for ours in names.all} | {"nvidia.com"}
    if name.partition("/")[0] not in prefixes or "/" not in name:
        return False
    return not any(fnmatchcase(name, pattern) for pattern in config.other_resources)
