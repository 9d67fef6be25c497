"""Where a MIG instance goes: every layout of a card is valued once, then each choice is a look into a table.

A layout is the set of memory slices in use, as bits; a card has 16 or 256 of them. Its waste is how many of its free
slices a pod of the usual mix could not use even if its kind filled the card: the same look ahead as for shares.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lamina.core.mig import MigCard, MigProfile


class Layouts:
    """Wastes of all layouts of one card for a mix of profiles: `waste[layout]`, in memory slices."""

    def __init__(self, card: MigCard, mix: Mapping[str, float]) -> None:
        """`mix` has how often each profile is asked for, by name. With an empty one the fullest card comes first."""
        self.card = card
        self._places = {profile.name: np.array(profile.masks) for profile in card.profiles}
        self.waste: NDArray[np.float64] = np.zeros(1 << card.slices)
        for name, often in mix.items():
            profile = card.profile(name)
            unused = [card.slices - layout.bit_count() - usable(profile, layout) for layout in range(1 << card.slices)]
            self.waste += often / sum(mix.values()) * np.array(unused)

    def gains(self, layouts: NDArray[np.int64], profile: str) -> NDArray[np.float64]:
        """How much less waste each place for the profile leaves, -inf where it is taken: (layouts, places)."""
        places = self._places[profile]
        gain = self.waste[layouts][:, None] - self.waste[layouts[:, None] | places]
        return np.where(layouts[:, None] & places, -np.inf, gain)

    def best(self, layouts: NDArray[np.int64], profile: str) -> tuple[int, int] | None:
        """The GPU, by its place in `layouts`, and the first slice for an instance of the profile; None without room.

        Of equal choices the GPU with most slices in use, then the first.
        """
        gain = self.gains(layouts, profile)
        top = gain.max(initial=-np.inf)
        if top == -np.inf:
            return None
        equal = np.argwhere(gain >= top - 1e-9)
        gpu, place = max(equal.tolist(), key=lambda choice: int(layouts[choice[0]]).bit_count())
        return gpu, self.card.profile(profile).starts[place]


def usable(profile: MigProfile, layout: int) -> int:
    """Memory slices that instances of the profile could take in addition to what is in use."""
    found = 0
    for mask in profile.masks:
        if not mask & layout:
            layout |= mask
            found += profile.size
    return found
