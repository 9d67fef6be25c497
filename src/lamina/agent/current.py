"""A value that changes now and then, and those who wait for its next form."""

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Current(Generic[T]):
    """The last value that was set. Nobody is told of a value equal to the one before."""

    def __init__(self, value: T) -> None:
        self.value = value
        self._version = 0
        self._changed = asyncio.Event()

    def set(self, value: T) -> None:
        if value != self.value:
            self.value = value
            self.again()

    def again(self) -> None:
        """Tell the value once more, as if it had changed."""
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def after(self, version: int) -> tuple[int, T]:
        """The value and its version, once that is not `version`; -1 is no version and answers at once."""
        while self._version == version:
            await self._changed.wait()
        return self._version, self.value
