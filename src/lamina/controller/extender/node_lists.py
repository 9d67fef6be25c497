"""Lists of node names as JSON, recognized by their bytes.

kube-scheduler names all nodes to filter, pod after pod, and to prioritize the nodes of filter's answer. Reading
thousands of names, and finding each of them, takes longer than deciding about them.
"""

from collections import deque

import msgspec

from lamina.placement import NodeNames

_KEPT = 16
_SHORTEST = 100
"""Names; shorter lists are read again."""


class NodeLists:
    """The lists that were read or written last."""

    def __init__(self) -> None:
        self._kept: deque[tuple[bytes, NodeNames]] = deque(maxlen=_KEPT)

    def read(self, written: msgspec.Raw) -> list[str] | None:
        """The names in a list, or None for JSON's null. Raises what msgspec raises for anything else."""
        text = bytes(written)
        for known, names in self._kept:
            if known == text:
                return names
        decoded = msgspec.json.decode(text, type=list[str] | None)
        return None if decoded is None else self._keep(text, NodeNames(decoded))

    def write(self, names: list[str]) -> msgspec.Raw:
        """The list as JSON, which is recognized when it is read."""
        text = msgspec.json.encode(names)
        self._keep(text, names if isinstance(names, NodeNames) else NodeNames(names))
        return msgspec.Raw(text)

    def _keep(self, text: bytes, names: NodeNames) -> NodeNames:
        if len(names) >= _SHORTEST:
            self._kept.appendleft((text, names))
        return names
