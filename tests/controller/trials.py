"""Whether a controller serves pods, and what it has set aside."""

from tests.controller.cluster import RunningController
from tests.waiting import until
from tests.worlds.objects import admitted_pod

EVERY_LOOP_S = 20.0
"""In this time each loop of the controller has its turn, and each watch is tried again."""


async def set_aside(cluster: RunningController) -> dict[str, float]:
    """How many objects were set aside, by kind."""
    async with cluster.session.get(f"{cluster.urls['extenderHttp']}/metrics") as response:
        lines = (await response.text()).splitlines()
    counts = [line.partition("} ") for line in lines if line.startswith("lamina_objects_set_aside_total{")]
    return {labels.split('kind="')[1].split('"')[0]: float(count) for labels, _, count in counts}


async def works(cluster: RunningController, name: str) -> None:
    """A pod is filtered, scored and bound, and its end is observed."""
    pod = await cluster.make(admitted_pod(name, gpumem=1000))

    async def bound() -> bool:
        assert not cluster.task.done()
        body = {"pod": pod, "nodenames": ["node-0"]}
        async with cluster.session.post(f"{cluster.urls['extenderHttp']}/filter", json=body) as response:
            if response.status != 200 or (await response.json()).get("nodenames") != ["node-0"]:
                return False
        async with cluster.session.post(f"{cluster.urls['extenderHttp']}/prioritize", json=body) as response:
            if response.status != 200:
                return False
        meta = pod["metadata"]
        args = {"podName": name, "podNamespace": "default", "podUID": meta["uid"], "node": "node-0"}
        async with cluster.session.post(f"{cluster.urls['extenderHttp']}/bind", json=args) as response:
            return response.status == 200 and (await response.json())["error"] == ""

    await until(bound, within_s=30, task=cluster.task, clock=cluster.clock, step_s=0.2)
