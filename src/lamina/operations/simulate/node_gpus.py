"""Which GPUs a node of a dump has, by what the system that serves it wrote on it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from lamina.core.cards import card
from lamina.core.gpus import Gpu, cordoned
from lamina.dialects import registry
from lamina.errors import BadInput

_UNKNOWN_MIB = 16384


def gpus_of(node: Mapping[str, Any]) -> tuple[Gpu, ...]:
    """The GPUs of a Node object. Raises BadInput where an annotation cannot be read."""
    metadata = node["metadata"]
    try:
        gpus = next((gpus for dialect in registry.DIALECTS if (gpus := dialect.read_node(node))), [])
    except (BadInput, ValueError, LookupError, TypeError, AttributeError, RecursionError, msgspec.DecodeError) as error:
        raise BadInput(f"node {metadata['name']}: its annotation about GPUs cannot be read: {error}") from error
    closed = cordoned(metadata.get("annotations"))
    return tuple(_completed(gpu, closed) for gpu in gpus)


def _completed(gpu: Gpu, closed: frozenset[str]) -> Gpu:
    memory = gpu.memory_mib or _memory_of(gpu.model)
    return msgspec.structs.replace(
        gpu,
        memory_mib=memory,
        capacity_mib=memory,
        cordoned=gpu.uuid in closed,
        reason="" if gpu.healthy else "the dump says so",
    )


def _memory_of(model: str) -> int:
    try:
        return card(model).memory_mib
    except BadInput:
        return _UNKNOWN_MIB
