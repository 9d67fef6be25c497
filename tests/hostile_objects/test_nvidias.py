"""A whole agent among odd configurations of NVIDIA: each is applied or refused with an event, and honest pods start."""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from lamina import configuration
from lamina.agent.mig import label_partitioner
from lamina.agent.nvidia.config_watch import find_source, read_applied
from lamina.configuration.nvidia.choice import LABEL
from lamina.core.object_names import is_object_name
from lamina.errors import BadInput
from lamina.ports.kube import (
    CLUSTER_POLICIES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    NODES,
)
from tests.agent.mig_nodes import FACTS
from tests.agent.planted import CONFIG, MinedAgent, mined_agent, seconds
from tests.hostile_objects import nvidias
from tests.hostile_objects.agent_trial import works
from tests.hostile_objects.objects import SEEDS, put

ROUNDS = 10
SETTLED_S = 12
"""After a change, an agent has read its configuration and has divided its GPUs, or has said why not."""


async def refused(agent: MinedAgent) -> str:
    """Why the configuration that the objects name now cannot apply, empty where it can."""
    config = configuration.load(CONFIG, "test")
    try:
        source = await find_source(agent.kube, config)
        await read_applied(agent.kube, agent.node.name, config, source)
    except Exception as problem:
        return str(problem) or type(problem).__name__
    return ""


async def said(agent: MinedAgent, reason: str) -> list[str]:
    return [each["message"] for each in (await agent.kube.list(EVENTS)).items if each["reason"] == reason]


async def label(agent: MinedAgent, name: str | None, key: str = LABEL) -> None:
    await agent.kube.patch(NODES, agent.node.name, {"metadata": {"labels": {key: name}}})


async def plugin_round(agent: MinedAgent, random: Random) -> None:
    """Other objects of NVIDIA's plugin, which the agent applies, or refuses with the reason in an event."""
    await put(agent.kube, CLUSTER_POLICIES, nvidias.cluster_policy(random))
    await put(agent.kube, CONFIG_MAPS, nvidias.plugin_configs(random))
    await label(agent, random.choice((None, *nvidias.NAMES, "absent")))
    await seconds(agent, SETTLED_S)
    problem = await refused(agent)
    if problem:
        messages = await said(agent, "ConfigurationRefused")
        assert any(each.startswith(problem[:900]) for each in messages), problem[:900]
        assert agent.aside.counts["configuration of NVIDIA's plugin"]


async def parted_round(agent: MinedAgent, random: Random) -> None:
    """Another file of mig-parted, and another label, by which the agent divides the GPUs, or says why it cannot."""
    await put(agent.kube, CONFIG_MAPS, nvidias.mig_parted_configs(random))
    await label(agent, random.choice((*nvidias.NAMES, "all-1g.5gb", "absent")), label_partitioner.LABEL)
    await seconds(agent, SETTLED_S)
    labels = (await agent.kube.get(NODES, agent.node.name))["metadata"]["labels"]
    assert labels.get(label_partitioner.STATE) in (label_partitioner.SUCCESS, label_partitioner.FAILED)
    if labels[label_partitioner.STATE] == label_partitioner.FAILED:
        assert agent.aside.counts["MIG configuration"] and await said(agent, "MigNotApplied")


@pytest.mark.parametrize("seed", SEEDS)
async def test_the_agent_among_odd_configurations_of_nvidia(
    seed: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    random = Random(seed)
    async with mined_agent(monkeypatch) as agent:
        kind = f"{CLUSTER_POLICIES.plural}.{CLUSTER_POLICIES.group}"
        await agent.kube.create(CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": kind}})
        await agent.begin()
        await works(agent, "first")
        for _ in range(ROUNDS):
            await plugin_round(agent, random)
        for policy in (await agent.kube.list(CLUSTER_POLICIES)).items:
            await agent.kube.delete(CLUSTER_POLICIES, policy["metadata"]["name"])
        await label(agent, None)
        await agent.inventory(lambda found: not found.native_resources)
        await works(agent, "honest")
        for _ in range(ROUNDS):
            await parted_round(agent, random)
        await label(agent, "all-disabled", label_partitioner.LABEL)
        await seconds(agent, SETTLED_S)
        await label(agent, None, label_partitioner.LABEL)
        await agent.inventory(lambda found: len(found.gpus) == len(FACTS) and all(gpu.healthy for gpu in found.gpus))
        await works(agent, "last")
    defects = [record.getMessage()[:500] for record in caplog.records if record.exc_info]
    assert not defects, "an object met a defect"


def test_there_are_valid_and_invalid_ones() -> None:
    random = Random(0)
    policies = [nvidias.cluster_policy(random)["spec"].get("devicePlugin") or {} for _ in range(100)]
    names = {(each.get("config") or {}).get("name") or "" for each in policies}
    assert {is_object_name(name) for name in names} == {True, False}
    for make, read in (
        (nvidias.plugin_configs, configuration.nvidia.load),
        (nvidias.mig_parted_configs, configuration.mig_parted.load),
    ):
        texts = [text for _ in range(30) for text in (make(random).get("data") or {}).values()]
        assert {is_valid(read, text) for text in texts} == {True, False}


def is_valid(read: Callable[[str, str], Any], text: str) -> bool:
    with suppress(BadInput):
        read(text, "test")
        return True
    return False
