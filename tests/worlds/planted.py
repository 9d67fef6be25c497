"""Exceptions that no one expects, planted in functions and behind ports."""

import inspect
from collections import Counter
from collections.abc import Callable
from typing import Any


class Planted(Exception):
    """No one expects it."""


def planted(*_: object) -> None:
    """Takes the place of a function that has a defect; its text has two lines."""
    raise Planted("a\nb")


def raising(when: Callable[..., bool], original: Any) -> Any:
    """`original`, but it raises an unexpected exception when `when` says so of its arguments."""

    def either(*arguments: Any, **options: Any) -> Any:
        if when(*arguments):
            raise Planted("planted")
        return original(*arguments, **options)

    return either


class Mines:
    """Which calls fail now, such as `nvml.gpus`, and how often each has."""

    def __init__(self) -> None:
        self.armed = ""
        self.raised: Counter[str] = Counter()

    def step(self, call: str) -> None:
        if call == self.armed:
            self.raised[call] += 1
            raise Planted(f"planted in {call}")

    def around(self, port: str, original: object) -> Any:
        """The port with mines behind every call."""
        return MinedPort(port, original, self)

    def before(self, call: str, original: Callable[..., Any]) -> Callable[..., Any]:
        """The call with a mine before it."""

        async def later(*arguments: Any, **options: Any) -> Any:
            self.step(call)
            return await original(*arguments, **options)

        def now(*arguments: Any, **options: Any) -> Any:
            self.step(call)
            return original(*arguments, **options)

        return later if inspect.iscoroutinefunction(original) else now


class MinedPort:
    """A port. Its attributes are the original's."""

    def __init__(self, name: str, original: object, mines: Mines) -> None:
        self._name = name
        self._original = original
        self._mines = mines

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._original, name)
        return self._mines.before(f"{self._name}.{name}", found) if callable(found) else found
