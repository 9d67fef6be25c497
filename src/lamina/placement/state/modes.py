"""In which mode a GPU takes a share: an idle one in any that its node allows, one that is in use in its own.

Whole GPUs and shares held by limits are one mode here, `quota`, since both leave the GPU as it is.
"""

from collections.abc import Sequence

from lamina.core.gpus import Gpu, Mode
from lamina.core.grants import Share
from lamina.core.ledger import Taken
from lamina.core.requests import GpuSelector

MODES = (Mode.QUOTA, Mode.MPS, Mode.MIG)
_SHARED = (Mode.QUOTA,)


def allowed(gpu: Gpu, *, partitionable: bool) -> tuple[Mode, ...]:
    """The modes that the node allows, the preferred one first. `partitionable`: the card's layouts are known."""
    if not gpu.modes:
        return _SHARED
    named = dict.fromkeys(Mode.QUOTA if mode is Mode.WHOLE else mode for mode in gpu.modes)
    return tuple(mode for mode in named if mode in MODES and (mode is not Mode.MIG or partitionable))


def kept(gpu: Gpu, taken: Taken) -> Mode | None:
    """The mode that who is on the GPU keeps it in; None while it is idle."""
    if taken.instances or gpu.mode is Mode.MIG:
        return Mode.MIG
    if taken.mps or gpu.mode is Mode.MPS:
        return Mode.MPS
    return Mode.QUOTA if taken.slots or taken.whole or gpu.mode is not None else None


def accepted(modes: Sequence[Mode], selector: GpuSelector | None) -> tuple[Mode, ...]:
    """Those of the modes that the pod accepts."""
    if selector is None or not selector.modes:
        return tuple(modes)
    return tuple(mode for mode in modes if mode in selector.modes)


def mode_of(share: Share) -> Mode:
    """The mode that the share keeps its GPU in."""
    return Mode.QUOTA if share.mode is Mode.WHOLE else share.mode


def mode_of_all(shares: Taken) -> Mode:
    """The mode that all shares of a pod keep the GPU in."""
    if shares.instances:
        return Mode.MIG
    return Mode.MPS if shares.mps else Mode.QUOTA
