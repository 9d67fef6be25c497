"""Pods from which the packing policy learns what usually comes."""

import asyncio

from lamina.ports.kube import Object
from tests.controller.binders import Bench
from tests.waiting import canceled
from tests.worlds.objects import admitted_pod


def pod(name: str, **limits: object) -> Object:
    made = admitted_pod(name, **limits)
    made["metadata"]["uid"] = f"uid-{name}"
    return made


async def watched(bench: Bench) -> None:
    """All that exists is reported."""
    task = asyncio.create_task(bench.watches.run())
    await asyncio.wait_for(bench.watches.synced.wait(), 60)
    await canceled(task)


def usual() -> list[Object]:
    return [pod(f"p{number}", gpumem=1000 * (1 + number % 8), gpucores=10) for number in range(60)]
