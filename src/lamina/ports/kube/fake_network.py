"""Decorators of a `Kube` that behave as a network does: requests take time, requests and answers get lost."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from lamina.ports.kube.errors import Unreachable
from lamina.ports.kube.protocol import Kube

_Options = ParamSpec("_Options")
_Answer = TypeVar("_Answer")

VERBS = ("get", "list", "create", "replace", "patch", "delete", "bind", "evict")


class DecoratedKube:
    """`kube`, with something around each of its calls except watches."""

    def __init__(self, kube: Kube) -> None:
        self.kube = kube
        self.lamina_namespace = kube.lamina_namespace
        self.get = self._decorated("get", kube.get)
        self.list = self._decorated("list", kube.list)
        self.watch = kube.watch
        self.create = self._decorated("create", kube.create)
        self.replace = self._decorated("replace", kube.replace)
        self.patch = self._decorated("patch", kube.patch)
        self.delete = self._decorated("delete", kube.delete)
        self.bind = self._decorated("bind", kube.bind)
        self.evict = self._decorated("evict", kube.evict)
        self.close = kube.close

    async def before(self, verb: str) -> None:
        """Runs before a call; an error is raised instead of it."""

    async def after(self, verb: str) -> None:
        """Runs after a call that succeeded; an error is raised instead of its answer."""

    def _decorated(
        self, verb: str, call: Callable[_Options, Awaitable[_Answer]]
    ) -> Callable[_Options, Coroutine[Any, Any, _Answer]]:
        async def decorated(*arguments: _Options.args, **options: _Options.kwargs) -> _Answer:
            await self.before(verb)
            answer = await call(*arguments, **options)
            await self.after(verb)
            return answer

        return decorated


class SlowKube(DecoratedKube):
    """Each request takes `request_s` seconds to arrive."""

    def __init__(self, kube: Kube, request_s: float) -> None:
        super().__init__(kube)
        self._request_s = request_s

    async def before(self, verb: str) -> None:
        await asyncio.sleep(self._request_s)


class LossyKube(DecoratedKube):
    """Loses each of its `faults` once: a request ("before") or the answer to one that took effect ("after")."""

    FAULTS = tuple((verb, when) for verb in VERBS for when in ("before", "after"))

    def __init__(self, kube: Kube) -> None:
        super().__init__(kube)
        self.faults: set[tuple[str, str]] = set()

    async def before(self, verb: str) -> None:
        self._lose(verb, "before")

    async def after(self, verb: str) -> None:
        self._lose(verb, "after")

    def _lose(self, verb: str, when: str) -> None:
        if (verb, when) in self.faults:
            self.faults.remove((verb, when))
            raise Unreachable(f"lost {when} {verb}")
