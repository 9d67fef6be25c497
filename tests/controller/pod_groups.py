"""Pod groups and their pods."""

import asyncio
from typing import Any

from lamina.controller.gangs.coordinator import GangCoordinator
from lamina.controller.gangs.records import WAIT_S
from lamina.dialects.groups import GROUP_ANNOTATION, GROUP_LABEL, KUBERNETES, SCHEDULER_PLUGINS, VOLCANO
from lamina.ports.kube import KUBERNETES_POD_GROUPS, PLUGIN_POD_GROUPS, VOLCANO_POD_GROUPS, Object
from tests.controller.binders import Bench
from tests.waiting import until
from tests.worlds.objects import admitted_pod


def member(group: str, number: int, *, api: str = SCHEDULER_PLUGINS, memory: int = 20000) -> Object:
    pod = admitted_pod(f"{group}-{number}", gpumem=memory)
    if api == KUBERNETES:
        pod["spec"]["schedulingGroup"] = {"podGroupName": group}
    elif api == VOLCANO:
        pod["metadata"]["annotations"] = {GROUP_ANNOTATION: group}
    else:
        pod["metadata"]["labels"] = {GROUP_LABEL: group}
    return pod


async def answer(bench: Bench, gangs: GangCoordinator, pod: Object, node: str) -> str:
    """What a binding gets when time passes, unless it gets an answer before."""
    waiting = asyncio.create_task(gangs.wait(bench.args(pod, node)))
    await until(waiting.done, clock=bench.clock, step_s=WAIT_S)
    return waiting.result()


_KINDS = {KUBERNETES: KUBERNETES_POD_GROUPS, SCHEDULER_PLUGINS: PLUGIN_POD_GROUPS, VOLCANO: VOLCANO_POD_GROUPS}


async def group(cluster: Any, name: str, minimum: Any, *, api: str = SCHEDULER_PLUGINS, **spec: Any) -> None:
    least = {"schedulingPolicy": {"gang": {"minCount": minimum}}} if api == KUBERNETES else {"minMember": minimum}
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {**least, **spec}}
    await cluster.kube.create(_KINDS[api], body)
