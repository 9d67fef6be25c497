"""How long each step took."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Steps:
    """Seconds of each step, in the order in which they ended; `say` prints each at once."""

    def __init__(self, *, say: bool = True) -> None:
        self.taken: list[tuple[str, float]] = []
        self._say = say

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        self.taken.append((name, time.monotonic() - start))
        if self._say:
            print(f"{self.taken[-1][1]:7.1f} s  {name}", file=sys.__stderr__, flush=True)
