"""Names of nodes that are asked about several times."""

from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAX_CHOICES = 8


class NodeNames(list[str]):
    """A list that only grows. What follows from the list is kept here."""

    __slots__ = ("_ranks", "choices", "rows")

    def __init__(self, *names: Any) -> None:
        super().__init__(*names)
        self.rows: Any = None
        """The rows that a table has for the nodes."""
        self.choices: OrderedDict[bytes, NodeNames] = OrderedDict()
        """The names that were chosen last, by a byte for each name of this list."""
        self._ranks: NDArray[np.int64] | None = None

    @property
    def ranks(self) -> NDArray[np.int64]:
        """The place of each name among all in alphabetical order."""
        if self._ranks is None or len(self._ranks) != len(self):
            order = sorted(range(len(self)), key=self.__getitem__)
            self._ranks = np.empty(len(self), np.int64)
            self._ranks[order] = np.arange(len(self))
        return self._ranks

    def chosen(self, key: bytes) -> "NodeNames | None":
        """The names that were chosen before by the same key."""
        if (names := self.choices.get(key)) is not None:
            self.choices.move_to_end(key)
        return names

    def keep_chosen(self, key: bytes, names: "NodeNames") -> None:
        self.choices[key] = names
        if len(self.choices) > _MAX_CHOICES:
            self.choices.popitem(last=False)
