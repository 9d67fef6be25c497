"""Running containers as processes: their shims, their execs, and how both end."""

import asyncio
import os
from collections.abc import Coroutine
from typing import Any

from msgspec import Struct, field

from lamina_lab.kubelet.containers.orphans import kill_adopted, kill_marked
from lamina_lab.kubelet.containers.shim_client import Exit, Program, Shim

CONTAINER_MARKER = "LAMINA_CONTAINER"


class RunningContainer(Struct):
    """One running container. `companions` are its execs and its probes' commands, `tasks` its probes' loops."""

    id: str
    program: Program
    shim: Shim
    began_at: float
    companions: set[Shim] = field(default_factory=set)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def watch(self, loop: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(loop))


class Runtime:
    """Starts the shims of this node and keeps track of them."""

    def __init__(self, marker: dict[str, str]) -> None:
        self._marker = marker
        self._shims: set[Shim] = set()
        self._forgetting: set[asyncio.Task[None]] = set()

    def run(self, program: Program, container_id: str) -> Shim:
        """Start `program`. `container_id` marks it and its child processes."""
        marked = {**self._marker, CONTAINER_MARKER: container_id}
        shim = Shim(program.marked(marked), marked)
        self._shims.add(shim)
        task = asyncio.create_task(self._forget(shim))
        self._forgetting.add(task)
        task.add_done_callback(self._forgetting.discard)
        return shim

    def companion(self, instance: RunningContainer, program: Program) -> Shim:
        """Run `program` next to a container. It ends with the container at the latest."""
        shim = self.run(program, instance.id)
        instance.companions.add(shim)
        return shim

    async def ended(self, instance: RunningContainer) -> Exit:
        """Wait until the container and everything that ran in it have ended."""
        outcome = await instance.shim.exited()
        for task in instance.tasks:
            task.cancel()
        for companion in instance.companions:
            companion.stop(0)
        if outcome.lost:
            # The shim was killed: its processes are now our children, or carry the marker.
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
