"""Values that change from time to time, such as the Node object, and the tasks that wait for their next state."""

import asyncio
from collections.abc import Mapping
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Observable(Generic[T]):
    """The last value that was set. Setting an equal value wakes no waiter."""

    def __init__(self, value: T) -> None:
        self.value = value
        self._version = 0
        self._changed = asyncio.Event()

    def set(self, value: T) -> None:
        if value != self.value:
            self.value = value
            self.notify()

    def notify(self) -> None:
        """Wake all waiters as if the value had changed."""
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def after(self, version: int) -> tuple[int, T]:
        """The version and the value, once the version differs from `version`; -1 never equals one."""
        while self._version == version:
            await self._changed.wait()
        return self._version, self.value


class ObservedNode(Struct, frozen=True, kw_only=True):
    """The fields of the Node object that the agent uses."""

    uid: str
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}
