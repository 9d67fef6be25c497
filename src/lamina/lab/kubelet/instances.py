"""Running containers as processes: their shims, what runs beside them, and the end of both together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from lamina.lab.kubelet.leftovers import kill_adopted, kill_marked
from lamina.lab.kubelet.shims import Exit, Program, Shim

CONTAINER_MARKER = "LAMINA_CONTAINER"


@dataclass(slots=True)
class Instance:
    """One running container: `companions` are its execs and probes' commands, `tasks` its probes' loops."""

    id: str
    program: Program
    shim: Shim
    began_at: float
    companions: set[Shim] = field(default_factory=set)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def watch(self, loop: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(loop))


class Runtime:
    """Starts shims of this node and knows which ones there are."""

    def __init__(self, marker: dict[str, str]) -> None:
        self._marker = marker
        self._shims: set[Shim] = set()
        self._forgetting: set[asyncio.Task[None]] = set()

    def run(self, program: Program, container_id: str) -> Shim:
        """Start `program`; `container_id` marks it and whatever it makes."""
        marked = {**self._marker, CONTAINER_MARKER: container_id}
        shim = Shim(program.marked(marked), marked)
        self._shims.add(shim)
        task = asyncio.create_task(self._forget(shim))
        self._forgetting.add(task)
        task.add_done_callback(self._forgetting.discard)
        return shim

    def companion(self, instance: Instance, program: Program) -> Shim:
        """Run `program` beside a container; it ends with the container at the latest."""
        shim = self.run(program, instance.id)
        instance.companions.add(shim)
        return shim

    async def ended(self, instance: Instance) -> Exit:
        """Wait for the container's end, and for that of everything that ran in it."""
        outcome = await instance.shim.exited()
        for task in instance.tasks:
            task.cancel()
        for companion in instance.companions:
            companion.stop(0)
        if outcome.lost:
            # Nobody is left to end what the supervisor looked after; it has become ours, or kept its marker.
            kill_adopted(lambda: {shim.pid for shim in self._shims})
            kill_marked({CONTAINER_MARKER: instance.id})
        for companion in list(instance.companions):
            await companion.exited()
        return outcome

    async def stop(self, grace_s: float) -> None:
        """End every container and exec of this node."""
        shims = list(self._shims)
        for shim in shims:
            shim.stop(grace_s)
        for shim in shims:
            await shim.exited()
        kill_adopted(lambda: {os.getpid()})

    async def _forget(self, shim: Shim) -> None:
        await shim.exited()
        self._shims.discard(shim)
