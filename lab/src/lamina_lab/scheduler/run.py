"""Runs the lab's scheduler until it is canceled."""

import asyncio
from collections.abc import Collection

from lamina.configuration import DEFAULT
from lamina.ports.clock import Clock
from lamina.ports.kube import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    GRANTS,
    INVENTORIES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Kube,
)
from lamina_lab.informer.cache import Cache
from lamina_lab.informer.supervise import supervise
from lamina_lab.scheduler.extender import Extender, ExtenderConfig
from lamina_lab.scheduler.loop import SchedulingLoop

_OF_DEVICES = (DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES)


async def run(
    kube: Kube, extender: ExtenderConfig | None, clock: Clock, *, names: Collection[str] = DEFAULT.schedulers.served
) -> None:
    """Place pods whose schedulerName is one of `names`, until canceled. The extender is optional."""
    cache = Cache(kube, clock, (PODS, NODES, *_OF_DEVICES), optional=(INVENTORIES, GRANTS, DEVICE_TAINT_RULES))
    caller = Extender(extender) if extender else None

    async def schedule() -> None:
        await SchedulingLoop(kube, cache, clock, names, caller).run()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(supervise("the scheduler's cache", cache.run, clock))
            group.create_task(supervise("the scheduler", schedule, clock))
    finally:
        if caller:
            await caller.close()
