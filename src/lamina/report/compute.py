"""What a share of compute means, in the words of all views: a limit, or a guarantee that lends idle time.

10 %, lends              a part that the container is sure of, and what others leave
10 %, lends up to 60 %   the same, never more than 60 %
10 %, cap                never more
10 %, no limit           only counted when pods are placed
"""

from collections.abc import Iterable

from lamina.core.gpus import Mode
from lamina.core.grants import ComputePolicy, Share

CAP, LENDS, NO_LIMIT = "cap", "lends", "no limit"


def held_by(share: Share) -> str:
    """What the percentage of a granted share means; empty where it has none, or has all of the GPU's time."""
    if share.mode is Mode.WHOLE or not share.cores:
        return ""
    if share.compute_policy is ComputePolicy.WEIGHT:
        return lent_up_to(share.cores, share.most_cores)
    if share.compute_policy is ComputePolicy.NONE and share.mode is not Mode.MIG:
        return "" if share.exclusive else NO_LIMIT
    return CAP


def lent_up_to(cores: int, most_cores: int) -> str:
    """What a percentage that lends means with this limit; 0 is none."""
    if most_cores == cores:
        return CAP
    return f"{LENDS} up to {most_cores} %" if most_cores else LENDS


def held_natively(mode: str, cores: int) -> str:
    """The same for a device that kubelet allocated: MIG and MPS have parts of the processors."""
    return CAP if cores and mode in (Mode.MIG, Mode.MPS) else ""


def in_words(percent: int | None, meaning: str) -> str:
    """The share in words. `percent` is None for a whole GPU and 0 where compute is shared without a limit."""
    if percent is None:
        return "whole"
    return ", ".join(filter(None, (f"{percent} %", meaning))) if percent else "shared"


def of_gpu(meanings: Iterable[str]) -> str:
    """What the percentages on one GPU mean together: each kind once."""
    found = {LENDS if each.startswith(LENDS) else each for each in meanings}
    return " and ".join(kind for kind in (CAP, LENDS, NO_LIMIT) if kind in found)
