"""What containers used over the last minutes, as far as metrics said it."""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from lamina.operations.dashboard.document import ClusterDocument, ShareCard

MOST_POINTS = 60
"""Of each share. With a reading every 5 seconds, these are 5 minutes."""


class UsePoint(NamedTuple):
    """One reading of one share, at a moment of a clock. None is what was not known."""

    at: float
    used_mib: int | None
    busy_percent: int | None


UsePoints = Mapping[str, Mapping[str, list[UsePoint]]]
"""Points in the order of time, by UID of the pod, and by container and GPU with a space between them."""


class UseHistory:
    """The last readings of the shares that exist. Moments must not go back."""

    def __init__(self) -> None:
        self._points: dict[str, dict[str, deque[UsePoint]]] = {}

    def note(self, now: float, document: ClusterDocument) -> None:
        """Take in what this document says of use, and forget shares that it lacks."""
        before, self._points = self._points, {}
        for uid, card in document.pods.items():
            known = before.get(uid, {})
            if rows := {f"{row.container} {row.gpu}": row for row in card.shares}:
                self._points[uid] = {key: _with(known.get(key), now, row) for key, row in rows.items()}

    def since(self, moment: float) -> UsePoints:
        """The points after this moment."""
        found: dict[str, dict[str, list[UsePoint]]] = {}
        for uid, shares in self._points.items():
            for key, points in shares.items():
                if points and points[-1].at > moment:
                    found.setdefault(uid, {})[key] = [point for point in points if point.at > moment]
        return found


def _with(points: deque[UsePoint] | None, now: float, row: ShareCard) -> deque[UsePoint]:
    points = deque(maxlen=MOST_POINTS) if points is None else points
    if row.used_mib is not None or row.busy_percent is not None:
        points.append(UsePoint(now, row.used_mib, row.busy_percent))
    return points
