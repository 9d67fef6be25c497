"""The lab's scheduler, running until it is cancelled."""

import asyncio
from collections.abc import Collection

from lamina.dialects.config import SCHEDULERS
from lamina.lab.informer.cache import Cache
from lamina.lab.informer.supervise import supervise
from lamina.lab.scheduler.extender import Extender, ExtenderConfig
from lamina.lab.scheduler.loop import Scheduler
from lamina.ports.clock import Clock
from lamina.ports.kube import GRANTS, INVENTORIES, NODES, PODS, Kube


async def run(
    kube: Kube, extender: ExtenderConfig | None, clock: Clock, *, names: Collection[str] = SCHEDULERS
) -> None:
    """Place pods whose schedulerName is one of `names`, until cancelled. Without an extender nobody is asked."""
    cache = Cache(kube, (PODS, NODES), optional=(INVENTORIES, GRANTS))
    caller = Extender(extender) if extender else None

    async def schedule() -> None:
        await Scheduler(kube, cache, clock, names, caller).run()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(supervise("the scheduler's cache", cache.run, clock))
            group.create_task(supervise("the scheduler", schedule, clock))
    finally:
        if caller:
            await caller.close()
