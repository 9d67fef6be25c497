"""The annotations of KAI's dialect, and how each is read. Every reader raises BadInput with one sentence."""

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from lamina.core.gpus import Mode
from lamina.core.grants import MAX_GPUS
from lamina.dialects.choices import list_options
from lamina.dialects.containers import MAX_MEMORY, quote
from lamina.dialects.patches import PatchOperation, escape_pointer
from lamina.dialects.protocol import WantedSize
from lamina.errors import BadInput
from lamina.name_hints import nearest

FRACTION, MEMORY = "gpu-fraction", "gpu-memory"
COUNT, CONTAINER = "gpu-fraction-num-devices", "gpu-fraction-container-name"
OF_CONTAINER = "nvidia.com/container."
COMPUTE_MODE = "kai.scheduler/gpu-compute-sharing-mode"
COMPUTE_MODES = {"time-slicing": Mode.QUOTA, "sm-sharing": Mode.MPS}
MPS = "mps"
REQUESTING = (FRACTION, MEMORY, OF_CONTAINER)
"""What the annotations start with by which pods request; a misspelled one is refused."""
_KEYS = (FRACTION, MEMORY, COUNT, CONTAINER, COMPUTE_MODE)
_GUARDED = (FRACTION, MEMORY, "kai.scheduler/gpu-")
_REQUEST, _LIMIT = "gpu-memory.request", "gpu-memory.limit"
_DEVICES = "gpus.devices"
_DECIMAL = re.compile(r"[0-9]{0,9}\.?[0-9]{0,18}([eE][+-]?[0-9]{1,2})?")
_AMOUNT = re.compile(r"([0-9]{1,10})(Mi|Gi|Ti)?")
_MIB = {None: 1, "Mi": 1, "Gi": 1024, "Ti": 1024 * 1024}


class RequestedPart(NamedTuple):
    """What one container requests of each GPU: an amount of memory, or a percentage of memory and time.

    `most_memory_mib` is the limit, if that is more than the amount, else 0.
    """

    memory_mib: int | None = None
    percent: int | None = None
    most_memory_mib: int = 0


def check_keys(annotations: Mapping[str, str]) -> None:
    """Refuse unknown keys, which would be lost silently."""
    for key in annotations:
        if key.startswith(_GUARDED) and key not in _KEYS:
            raise BadInput(f"unknown annotation {key}{nearest(key, _KEYS)}")


def read_mode(annotations: Mapping[str, str]) -> Mode:
    """The mode that the pod's GPUs are to be in."""
    wants_mps = annotations.get(MPS, "").strip().lower() == "true"
    if COMPUTE_MODE not in annotations:
        return Mode.MPS if wants_mps else Mode.QUOTA
    mode = COMPUTE_MODES.get(annotations[COMPUTE_MODE])
    if mode is None:
        raise BadInput(
            f"annotation {COMPUTE_MODE} must be {list_options(COMPUTE_MODES)}, got {quote(annotations[COMPUTE_MODE])}"
        )
    if wants_mps and mode is not Mode.MPS:
        raise BadInput(f"annotations {MPS} and {COMPUTE_MODE} ask for different modes; remove one of them")
    return mode


def read_count(annotations: Mapping[str, str]) -> int:
    """How many GPUs each container gets."""
    return _integer(COUNT, annotations[COUNT], MAX_GPUS, "") if COUNT in annotations else 1


def read_part(annotations: Mapping[str, str]) -> RequestedPart | None:
    """What the pod's annotations request for its one container with GPUs, if they request anything."""
    if FRACTION in annotations and MEMORY in annotations:
        raise BadInput(f"annotations {FRACTION} and {MEMORY} exclude each other; remove one of them")
    if FRACTION in annotations:
        return RequestedPart(percent=_percent(annotations[FRACTION]))
    if MEMORY in annotations:
        return RequestedPart(memory_mib=_integer(MEMORY, annotations[MEMORY], MAX_MEMORY, " in MiB without a unit"))
    return None


def read_parts_by_container(annotations: Mapping[str, str]) -> dict[str, RequestedPart]:
    """What the annotations request for the containers that they name."""
    written: dict[str, dict[str, int]] = {}
    for key in sorted(annotations):
        if key.startswith(OF_CONTAINER):
            container, field = _split(key)
            written.setdefault(container, {})[field] = _mib(key, annotations[key])
    return {container: _part(container, amounts) for container, amounts in written.items()}


def write_size(annotations: Mapping[str, str], container: str, size: WantedSize) -> Iterator[PatchOperation]:
    """Replace the amounts that the annotations request for a container. Raises BadInput."""
    if size.cores is not None:
        raise BadInput("annotations of KAI have no key for compute alone, so only memory can be changed")
    if FRACTION in annotations:
        raise BadInput(f"annotation {FRACTION} has no amount of memory; use {MEMORY} to change it")
    own = [key for key in annotations if key.startswith(OF_CONTAINER) and _split(key)[0] == container]
    for key in own or [MEMORY]:
        if not (len(own) > 1 and key.endswith(_LIMIT) and _mib(key, annotations[key]) >= (size.memory_mib or 0)):
            yield PatchOperation(f"/metadata/annotations/{escape_pointer(key)}", str(size.memory_mib))


def _split(key: str) -> tuple[str, str]:
    """The container and the field in the key of an annotation."""
    container, _, field = key.removeprefix(OF_CONTAINER).partition(".")
    if field == _DEVICES:
        raise BadInput(f"annotation {key} cannot be set, because Lamina chooses the GPUs; remove it")
    if not container or field not in (_REQUEST, _LIMIT):
        raise BadInput(
            f"unknown annotation {quote(key)}; after {OF_CONTAINER} and the name of a container comes "
            f"{list_options((_REQUEST, _LIMIT))}"
        )
    return container, field


def _part(container: str, amounts: Mapping[str, int]) -> RequestedPart:
    """What the request and the limit of a container say; where one of them is absent, they are equal."""
    request = amounts.get(_REQUEST, amounts.get(_LIMIT, 0))
    limit = amounts.get(_LIMIT, request)
    if limit < request:
        key = f"{OF_CONTAINER}{container}"
        raise BadInput(f"annotation {key}.{_LIMIT} must be at least {key}.{_REQUEST}, {request} MiB, got {limit} MiB")
    return RequestedPart(memory_mib=request, most_memory_mib=limit if limit > request else 0)


def _percent(written: str) -> int:
    try:
        percent = Fraction(written) * 100 if _DECIMAL.fullmatch(written) else Fraction(0)
    except ValueError:
        percent = Fraction(0)
    if not 1 <= percent <= 99 or percent.denominator != 1:
        raise BadInput(
            f"annotation {FRACTION} must be a number from 0.01 to 0.99 with at most two digits after the point, "
            f"got {quote(written)}; for other amounts, use {MEMORY}"
        )
    return int(percent)


def _integer(key: str, written: str, maximum: int, unit: str) -> int:
    plain = written.isascii() and written.isdecimal() and len(written) <= len(str(maximum))
    if not plain or not 1 <= int(written) <= maximum:
        raise BadInput(f"annotation {key} must be an integer from 1 to {maximum}{unit}, got {quote(written)}")
    return int(written)


def _mib(key: str, written: str) -> int:
    match = _AMOUNT.fullmatch(written)
    mib = int(match[1]) * _MIB[match[2]] if match else 0
    if not 1 <= mib <= MAX_MEMORY:
        raise BadInput(
            f"annotation {key} must be a number of MiB such as 8000, or a number with Mi, Gi or Ti such as 8Gi, "
            f"got {quote(written)}"
        )
    return mib
