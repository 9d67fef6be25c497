"""What the driver says of the work of containers on a GPU: figures that are averages of the last second."""

from collections import deque
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

COVERED_NS = 1_000_000_000
"""The driver's figures are averages of so long a time before they were asked for."""
T = TypeVar("T")


class Confirmation(Struct, frozen=True):
    """What the driver says of one container on one GPU. None is what it cannot say."""

    processes: int | None
    """How many of the container's processes have a context there."""
    work: float | None
    """For which part of the GPU's time they worked lately."""
    asked_at: int = 0
    """When the driver was asked, on the arbiter's clock in ns; 0 if that is not known."""
    owner: str = ""
    """Whose processes these are, where that is more than this container: all of one owner have the same figures."""
    memory: int | None = None
    """How many bytes of the GPU's memory these processes hold."""
    unlisted: int | None = None
    """How many bytes of the GPU are in use without being of a listed process: managed memory, which drivers list for
    the whole GPU only."""


UNCONFIRMED = Confirmation(None, None)


class Confirmed(Protocol):
    """A container, with what the driver says of it."""

    @property
    def name(self) -> str: ...

    @property
    def confirmed(self) -> Confirmation | None: ...


def newest_figure(containers: Iterable[Confirmed]) -> int:
    """When the driver was last asked about one of them; 0 if that is not known."""
    return max((each.confirmed.asked_at for each in containers if each.confirmed is not None), default=0)


def owner_of(container: Confirmed) -> str:
    """Whose work the driver's figure is."""
    return container.name if container.confirmed is None else container.confirmed.owner or container.name


class SlidingWindow(Generic[T]):
    """States over time, as far back as the second that a figure covers."""

    def __init__(self) -> None:
        self._states: deque[tuple[int, T]] = deque()

    def add(self, now: int, state: T) -> tuple[int, T]:
        """Keep the state of now. Returns that of a second ago, or the first one, and when it was."""
        self._states.append((now, state))
        while len(self._states) > 1 and self._states[1][0] <= now - COVERED_NS:
            self._states.popleft()
        return self._states[0]

    def clear(self) -> None:
        """Forget all states."""
        self._states.clear()
