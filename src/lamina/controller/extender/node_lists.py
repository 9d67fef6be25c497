"""Lists of node names as JSON, recognized by their bytes.

kube-scheduler names all nodes to filter, pod after pod, and to prioritize the nodes of filter's answer. Reading
thousands of names, finding each of them, and writing them again with their scores takes longer than deciding about
them. So the lists that were read or written last are kept, with what follows from them.
"""

from collections import deque
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from lamina.controller.scheduling.scores import Integers
from lamina.placement import NodeNames

_KEPT = 16
_MIN_NAMES = 100
"""Names; shorter lists are read again."""
_FIELD = b',"NodeNames":'
"""What kube-scheduler writes before the list, which is the last field of its requests."""
_DIGITS = np.array([b" %d" % score if score < 10 else b"%d" % score for score in range(100)], "S2")


class _KnownList:
    """A list, and the end of a request that has it as its last field."""

    def __init__(self, text: bytes, names: NodeNames) -> None:
        self.end = _FIELD + text + b"}"
        self.names = names

    @property
    def text(self) -> bytes:
        return self.end[len(_FIELD) : -1]

    def is_text(self, text: bytes) -> bool:
        return len(text) == len(self.end) - len(_FIELD) - 1 and self.end.startswith(text, len(_FIELD))

    @cached_property
    def scored(self) -> "_ScoredList":
        return _ScoredList(self.text)


class _ScoredList:
    """A list of `HostPriority` in which only the scores are written."""

    def __init__(self, text: bytes) -> None:
        """`text` is the list of names. Zero bytes, which JSON never has, stand for the scores."""
        inner = text[1:-1].replace(b'","', b'","score":\0\0},{"host":"')
        self._text = np.frombuffer(b'[{"host":%b,"score":\0\0}]' % inner, np.uint8)
        self._tens = np.flatnonzero(self._text == 0)[::2]

    def with_scores(self, scores: Integers) -> bytes:
        text, digits = self._text.copy(), _digits(scores)
        text[self._tens], text[self._tens + 1] = digits[:, 0], digits[:, 1]
        return text.tobytes()


class NodeLists:
    """The lists that were read or written last."""

    def __init__(self) -> None:
        self._kept: deque[_KnownList] = deque(maxlen=_KEPT)

    def split(self, body: bytes) -> tuple[bytes, NodeNames | None]:
        """A request without the list at its end, and the list, if it is known.

        The rest is JSON exactly if the request is, and has the same other fields: what is compared has whole values and
        one closing brace after its comma, and the comma has to follow something.
        """
        for known in self._kept:
            if body.endswith(known.end):
                rest = body[: -len(known.end)]
                return (body, None) if rest.rstrip().endswith(b"{") else (rest + b"}", known.names)
        return body, None

    def read(self, written: msgspec.Raw) -> list[str] | None:
        """The names in a list, or None for JSON's null. Raises what msgspec raises for anything else."""
        text = bytes(written)
        for known in self._kept:
            if known.is_text(text):
                return known.names
        decoded = msgspec.json.decode(text, type=list[str] | None)
        return None if decoded is None else self._keep(text, NodeNames(decoded)).names

    def write(self, names: list[str]) -> msgspec.Raw:
        """The list as JSON, which is recognized when it is read."""
        known = self._known(names)
        return msgspec.Raw(msgspec.json.encode(names) if known is None else known.text)

    def write_scores(self, names: list[str], scores: Integers) -> msgspec.Raw:
        """A list of `HostPriority` as JSON. Scores have at most two digits."""
        known = self._known(names)
        text = msgspec.json.encode(names) if known is None else known.text
        if not names or b"\\" in text:  # no node has such a name
            pairs = zip(names, scores.tolist(), strict=True)
            return msgspec.Raw(msgspec.json.encode([{"host": name, "score": score} for name, score in pairs]))
        scored = _ScoredList(text) if known is None else known.scored
        return msgspec.Raw(scored.with_scores(scores))

    def _known(self, names: list[str]) -> _KnownList | None:
        """The list in its kept form; None for one that is too short to be kept."""
        if len(names) < _MIN_NAMES:
            return None
        for known in self._kept:
            if known.names is names:
                return known
        return self._keep(msgspec.json.encode(names), names if isinstance(names, NodeNames) else NodeNames(names))

    def _keep(self, text: bytes, names: NodeNames) -> _KnownList:
        known = _KnownList(text, names)
        if len(names) >= _MIN_NAMES:
            self._kept.appendleft(known)
        return known


def _digits(scores: Integers) -> NDArray[np.uint8]:
    return _DIGITS[scores].view(np.uint8).reshape(-1, 2)
