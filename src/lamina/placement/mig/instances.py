"""MIG instances for several containers of one pod on one GPU, so that all have one and no two that overlap.

Containers that never run side by side may have the same instance, because it stays until the pod ends; others each
have their own. A search over places, the best first, which tries equal layouts once.
"""

from collections.abc import Callable, Iterator, Sequence

from lamina.core.mig import Placed
from lamina.placement.mig.partitions import Partitions

_MAX_STEPS = 2000
"""Layouts looked at for one pod on one GPU; a card has a few hundred."""

Chosen = tuple[Placed, ...]


def arrange_instances(
    partitions: Partitions, holding: Sequence[int], together: Callable[[int, int], bool] = lambda one, other: True
) -> Chosen | None:
    """An instance for each of the containers; `holding` are the profiles that hold them (`PartitionScheme.holding`).

    `together` says of two of them whether they ever run at the same time. None where not all find a place.
    """
    steps, dead = _MAX_STEPS, set[Chosen]()

    def search(chosen: Chosen) -> Chosen | None:
        nonlocal steps
        if len(chosen) == len(holding):
            return chosen
        for placed in _candidates(partitions, holding, together, chosen):
            likeness = tuple(sorted((*chosen, placed)))
            steps -= 1
            if likeness in dead or steps < 0:
                continue
            found = search((*chosen, placed))
            if found is not None:
                return found
            dead.add(likeness)
        return None

    return search(())


def _candidates(
    partitions: Partitions, holding: Sequence[int], together: Callable[[int, int], bool], chosen: Chosen
) -> Iterator[Placed]:
    """Instances for the next container: those of containers that it never meets, then new ones from the smallest."""
    index = len(chosen)
    met = {placed for other, placed in enumerate(chosen) if together(index, other)}
    able = [profile for place, profile in enumerate(partitions.scheme.profiles) if holding[index] >> place & 1]
    names = {profile.name for profile in able}
    yield from dict.fromkeys(placed for placed in chosen if placed.profile in names and placed not in met)
    for profile in able:
        yield from partitions.places(profile, tuple(dict.fromkeys(chosen)))
