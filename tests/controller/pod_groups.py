"""Pod groups and their pods."""

import asyncio
from typing import Any

from lamina.controller.gangs.coordinator import WAIT_S, GangCoordinator
from lamina.dialects.groups import GROUP_ANNOTATION, GROUP_LABEL
from lamina.ports.kube import PLUGIN_POD_GROUPS, VOLCANO_POD_GROUPS, Object
from tests.controller.binders import Bench
from tests.controller.cluster import admitted_pod
from tests.waiting import until


def member(group: str, number: int, *, volcano: bool = False, memory: int = 20000) -> Object:
    pod = admitted_pod(f"{group}-{number}", gpumem=memory)
    meta = pod["metadata"]
    if volcano:
        meta["annotations"] = {GROUP_ANNOTATION: group}
    else:
        meta["labels"] = {GROUP_LABEL: group}
    return pod


async def answer(bench: Bench, gangs: GangCoordinator, pod: Object, node: str) -> str:
    """What a binding gets when time passes, unless it gets an answer before."""
    waiting = asyncio.create_task(gangs.wait(bench.args(pod, node)))
    await until(waiting.done, clock=bench.clock, step_s=WAIT_S)
    return waiting.result()


async def group(cluster: Any, name: str, minimum: Any, *, volcano: bool = False, **spec: Any) -> None:
    kind = VOLCANO_POD_GROUPS if volcano else PLUGIN_POD_GROUPS
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": minimum, **spec}}
    await cluster.kube.create(kind, body)
