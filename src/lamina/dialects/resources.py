"""Whose a resource name is: a served vocabulary's, another GPU-sharing system's, or none of our business.

A name that looks like ours and is not (`nvidia.com/gpu-mem`) is refused with the nearest known one: a silently ignored
limit would be a GPU without limit. Other systems keep resources under the same prefixes; `otherResources` lists them.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from lamina.dialects.config import Config
from lamina.dialects.strict import closest
from lamina.dialects.vocabularies import Vocabulary, hami, vocabularies
from lamina.errors import BadInput

SERVED = (
    "served here are hami (nvidia.com/gpu, gpumem, gpumem-percentage, gpucores, priority), volcano (volcano.sh/vgpu-*) "
    "and cce (volcano.sh/gpu-mem.128Mi, gpu-core.percentage)"
)
_FOREIGN = {
    "volcano-gpushare": re.compile(r"volcano\.sh/(gpu-memory|gpu-number)"),
    "gpushare": re.compile(r"aliyun\.com/gpu-.*"),
    "gpu-manager": re.compile(r"tencent\.com/vcuda-.*"),
}
_PLAIN_GPU = "nvidia.com/gpu"
_PREFIXES = ("nvidia.com/", "volcano.sh/vgpu-", "volcano.sh/gpu-")


def vocabulary_of(asked: Iterable[str], config: Config) -> Vocabulary | None:
    """The vocabulary of a pod that asks these resources, None where it asks no GPU.

    Raises BadInput for mixed, unserved and unknown names.
    """
    served = vocabularies(config)
    names = sorted(set(asked))
    spoken = [(name, vocabulary) for name in names for vocabulary in served if name in vocabulary.all]
    for name in names:
        other = _dialect_of(name, served)
        if other and spoken and other != spoken[0][1].dialect:
            raise BadInput(f"the pod mixes {spoken[0][0]} with {name} of the {other} vocabulary; use one of the two")
        if other in _FOREIGN:
            raise BadInput(f"{name} belongs to the {other} vocabulary, which is not served; {SERVED}")
        if not other and _looks_like_ours(name, served, config):
            raise BadInput(f"unknown resource {name}{_hint(name, served)}")
    return spoken[0][1] if spoken else None


def _hint(name: str, served: Iterable[Vocabulary]) -> str:
    """The likeness is that of the parts after the slash, among the names with the same prefix if there are any."""
    prefix, _, part = name.partition("/")
    every = [known for vocabulary in served for known in vocabulary.all]
    parts = {known.partition("/")[2]: known for known in every if known.startswith(f"{prefix}/")}
    near = closest(part, parts) if parts else None
    return f"; did you mean {parts[near]}?" if near else f"; known are {', '.join(parts.values() or every)}"


def _dialect_of(name: str, served: Iterable[Vocabulary]) -> str:
    """The vocabulary that the name belongs to, served or not, or nothing."""
    own = next((vocabulary.dialect for vocabulary in served if name in vocabulary.all), "")
    if own:
        return own
    if name == _PLAIN_GPU:
        return "nvidia"
    return next((vocabulary for vocabulary, form in _FOREIGN.items() if form.fullmatch(name)), "")


def _looks_like_ours(name: str, served: Iterable[Vocabulary], config: Config) -> bool:
    configured = {f"{ours.partition('/')[0]}/" for ours in hami(config).all}
    if not name.startswith((*_PREFIXES, *configured)):
        return False
    return not any(fnmatchcase(name, pattern) for pattern in config.other_resources)
