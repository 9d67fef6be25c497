"""A whole agent among objects that only the API server has checked: honest pods start, and nothing ends."""

from random import Random

import pytest

from lamina.core.definitions import GRANT, INVENTORY
from lamina.core.grants import grant_name
from lamina.ports.kube import GRANTS, INVENTORIES, NODES, PODS, Object
from lamina.ports.kubelet.allocations import Holder
from tests.agent.node import RESOURCE
from tests.agent.planted import MinedAgent, mined_agent, seconds
from tests.hostile_objects.agent_trial import works
from tests.hostile_objects.objects import SEEDS, custom, node, objects, put

OBJECTS = 40


async def grant(agent: MinedAgent, random: Random, pod: Object) -> None:
    """Give a pod of the node any grant, and let kubelet list its first container as one that is starting."""
    meta = pod["metadata"]
    made = custom(random, GRANT, {"name": grant_name(meta["name"], meta["uid"]), "namespace": meta["namespace"]})
    made["spec"] |= {"pod": meta["name"], "podUID": meta["uid"], "node": agent.node.name}
    await put(agent.kube, GRANTS, made)
    first = pod["spec"]["containers"][0]["name"]
    agent.kubelet.held = [(RESOURCE, Holder(meta["namespace"], meta["name"], first, frozenset({"ticket-0"})))]


@pytest.mark.parametrize("seed", SEEDS)
async def test_the_agent_among_odd_objects(
    seed: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    random = Random(seed)
    async with mined_agent(monkeypatch) as agent:
        await agent.begin()
        await works(agent, "first")
        for number, (resource, obj) in enumerate(objects(seed, OBJECTS, [agent.node.name] * 4)):
            made = await put(agent.kube, resource, obj)
            if resource is PODS and made["spec"].get("nodeName") == agent.node.name:
                await grant(agent, random, made)
            elif resource is NODES:
                await put(agent.kube, NODES, node(random, agent.node.name))
            elif resource is INVENTORIES:
                await put(agent.kube, INVENTORIES, custom(random, INVENTORY, {"name": agent.node.name}))
            await seconds(agent, 1)
            assert agent.alive
            if number % 20 == 19:
                agent.kubelet.held = []
                await works(agent, f"honest-{number}")
        await agent.inventory(lambda found: len(found.gpus) == 2 and all(gpu.healthy for gpu in found.gpus))
    defects = [record.getMessage()[:500] for record in caplog.records if record.exc_info]
    assert not defects, "an object met a defect"
