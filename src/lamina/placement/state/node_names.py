"""Names of nodes that are asked about several times."""

from typing import Any


class NodeNames(list[str]):
    """A list that only grows. A table keeps the rows of its nodes here."""

    __slots__ = ("rows",)

    def __init__(self, *names: Any) -> None:
        super().__init__(*names)
        self.rows: Any = None
