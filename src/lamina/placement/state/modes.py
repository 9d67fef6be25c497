"""In which mode a GPU takes a share: an idle one in any that its node allows, one that is in use in its own.

Whole GPUs and shares held by limits are one mode here, `quota`, since both leave the GPU undivided.
"""

from collections.abc import Sequence

from lamina.model.gpus import Gpu, Mode
from lamina.model.ledger import Taken
from lamina.model.requests import GpuSelector

MODES = (Mode.QUOTA, Mode.MIG)
_SHARED = (Mode.QUOTA,)


def allowed(gpu: Gpu, *, partitionable: bool) -> tuple[Mode, ...]:
    """The modes that the node allows, the preferred one first. `partitionable`: the card's layouts are known."""
    if not gpu.modes:
        return _SHARED
    named = dict.fromkeys(Mode.QUOTA if mode is Mode.WHOLE else mode for mode in gpu.modes)
    return tuple(mode for mode in named if mode is Mode.QUOTA or (mode is Mode.MIG and partitionable))


def kept(gpu: Gpu, taken: Taken) -> Mode | None:
    """The mode that who is on the GPU keeps it in; None while it is idle."""
    if taken.instances or gpu.mode is Mode.MIG:
        return Mode.MIG
    return Mode.QUOTA if taken.slots or taken.whole or gpu.mode is not None else None


def accepted(modes: Sequence[Mode], selector: GpuSelector | None) -> tuple[Mode, ...]:
    """Those of the modes that the pod accepts."""
    if selector is None or not selector.modes:
        return tuple(modes)
    return tuple(mode for mode in modes if mode in selector.modes)
