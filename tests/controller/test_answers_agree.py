"""One question, one answer: what filter says of a node, binding does, and `why`, `fits`, `pods` and the page say.

Pods of every dialect, with amounts, percentages, whole GPUs and fractions, in namespaces with quotas of every kind, on
nodes of unlike GPUs, of which some are in use, held, claimed, allocated to claims that no agent has prepared, or
allocated by kubelet.
"""

import asyncio
import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from lamina.core.claims import HeldClaim
from lamina.core.gpus import Inventory, Mode, NativeResource
from lamina.core.grants import ContainerGrant, Share
from lamina.report.cluster_reader import ClusterObjects, view_of
from lamina.report.pod_templates import PodTemplate
from lamina.report.reasons import waiting_because, why_pod
from lamina.report.what_fits import FitCheck
from tests.controller.answers import (
    PODS_ASKED,
    QUOTAS,
    AskedCluster,
    admitted,
    card,
    check_answers,
    check_group,
    container,
    pod,
)

STATES = {
    "nothing": {},
    "a scheduler of others": {"spec": {"schedulerName": "my-scheduler"}},
    "a gate": {"spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}},
    "deleted": {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
}


async def busy(world: AskedCluster) -> None:
    """A pod of another namespace has most of one GPU, and one of each namespace with quotas has a little."""
    other = await world.make(admitted(pod(container(gpumem=30000))), "other", "holds")
    assert await world.bench.bind(other, "v") == ""
    mine = await world.make(admitted(pod(container(gpumem=1000, gpucores=10))), "team", "holds")
    assert await world.bench.bind(mine, "u") == ""


@pytest.mark.parametrize("in_use", [False, True])
@pytest.mark.parametrize("hard", QUOTAS, ids=json.dumps)
async def test_filter_binding_and_views_agree(hard: list[dict[str, Any]], in_use: bool) -> None:
    world = AskedCluster()
    if in_use:
        await busy(world)
    world.limit("team", hard)
    for kind in PODS_ASKED:
        await check_answers(world, kind)


MODELS = (("Tesla V100", 32768), ("A100", 40960), ("Tesla T4", 15360))
NODES = ("a", "b", "c")
ENOUGH = 100
"""Native devices of a node. Filter leaves counting them to kube-scheduler, which views do as it does."""


@st.composite
def nodes(draw: st.DrawFn) -> tuple[Inventory, ...]:
    """Unlike nodes, with GPUs that are not healthy, cordoned, held by claims, or allocated by kubelet."""
    found = []
    for node in NODES[: draw(st.integers(1, len(NODES)))]:
        gpus, claims = [], []
        native = draw(st.sampled_from([0, 0, ENOUGH]))
        for index in range(draw(st.integers(1, 3))):
            model, memory = draw(st.sampled_from(MODELS))
            state = draw(st.sampled_from(["shared", "shared", "unhealthy", "cordoned", "claimed", "small"]))
            gpu = card(node, index, model, memory, slots=1 if state == "small" else 10)
            if state == "claimed" and not native:
                gpu = structs.replace(gpu, mode=Mode.TIMESLICE)
                shares = (Share(gpu=gpu.uuid, memory_mib=1000),)
                request = ContainerGrant(name="r", shares=shares)
                claims.append(HeldClaim(namespace="other", name=f"c{index}", uid=gpu.uuid, requests=(request,)))
            gpu = structs.replace(gpu, healthy=state != "unhealthy", cordoned=state == "cordoned")
            gpus.append(structs.replace(gpu, native_resource="nvidia.com/gpu") if native else gpu)
        resources = (NativeResource(resource="nvidia.com/gpu", count=native),) if native else ()
        found.append(
            Inventory(node=node, driver="1", gpus=tuple(gpus), claims=tuple(claims), native_resources=resources)
        )
    return tuple(found)


@settings(deadline=None)
@given(
    nodes(),
    st.sampled_from(QUOTAS),
    st.lists(st.tuples(st.sampled_from(sorted(PODS_ASKED)), st.sampled_from(["team", "other"])), max_size=4),
    st.lists(st.integers(1, 40), max_size=2),
    st.lists(st.integers(0, 8), max_size=2),
    st.sampled_from(sorted(PODS_ASKED)),
)
def test_answers_agree_in_any_cluster(
    inventories: tuple[Inventory, ...],
    hard: list[dict[str, Any]],
    running: list[tuple[str, str]],
    holds: list[int],
    allocated: list[int],
    kind: str,
) -> None:
    async def check() -> None:
        world = AskedCluster(inventories)
        for number, (of, namespace) in enumerate(running):
            made = await world.make(admitted(PODS_ASKED[of]), namespace, f"runs-{number}")
            await world.bench.bind(made, inventories[number % len(inventories)].node)
        for number, gib in enumerate(holds):
            node = inventories[number % len(inventories)]
            await world.hold(f"waits-{number}", node.node, node.gpus[-1].uuid, gib * 1024)
        for number in allocated:
            node = inventories[number % len(inventories)]
            world.allocate(node, node.gpus[number % len(node.gpus)])
        world.limit("team", hard)
        await check_answers(world, kind)

    asyncio.run(check())


KINDS_OF_MEMBERS = sorted(PODS_ASKED.keys() - {"no GPU"})


@settings(deadline=None)
@given(
    nodes(),
    st.sampled_from(QUOTAS),
    st.lists(st.sampled_from(KINDS_OF_MEMBERS), max_size=2),
    st.lists(st.integers(1, 40), max_size=2),
    st.lists(st.sampled_from(KINDS_OF_MEMBERS), min_size=1, max_size=2),
    st.integers(1, 6),
    st.integers(-1, 1),
)
def test_answers_about_groups_agree_in_any_cluster(
    inventories: tuple[Inventory, ...],
    hard: list[dict[str, Any]],
    running: list[str],
    holds: list[int],
    kinds: list[str],
    number: int,
    more: int,
) -> None:
    async def check() -> None:
        world = AskedCluster(inventories)
        for place, kind in enumerate(running):
            made = await world.make(admitted(PODS_ASKED[kind]), "other", f"runs-{place}")
            await world.bench.bind(made, inventories[place % len(inventories)].node)
        for place, gib in enumerate(holds):
            node = inventories[place % len(inventories)]
            await world.hold(f"waits-{place}", node.node, node.gpus[-1].uuid, gib * 1024)
        world.limit("team", hard)
        members = [kinds[place % len(kinds)] for place in range(number)]
        await check_group(world, members, max(1, number + more))

    asyncio.run(check())


@pytest.mark.parametrize("state", STATES)
async def test_pods_that_are_not_placed_are_refused_everywhere_in_the_same_words(state: str) -> None:
    world = AskedCluster()
    manifest = copy.deepcopy(PODS_ASKED["half"])
    for part, changed in STATES[state].items():
        manifest[part] |= changed
    filled = admitted(manifest)
    asked = await world.make(filled, "team", "asked")
    fitting, error = world.filter(asked)
    view = await world.view()
    lines = list(why_pod(view, asked))
    assert bool(fitting) == (not error) == (state == "nothing") == (" would fit now" in lines[0])
    said = await world.bench.bind(asked, "v")
    assert (said == "") == (state == "nothing"), said
    if error:
        words = error.removeprefix("the pod ")
        assert words in lines[0] and words in said and waiting_because(view, asked) == error
        answer = FitCheck(view).check(PodTemplate("Pod p", asked, 1))
        assert not answer.fits and words in answer.lines[0]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("a scheduler of others", "p names the scheduler my-scheduler, which Lamina does not serve."),
        ("a gate", "p is held by the gate kueue.x-k8s.io/admission."),
        ("deleted", "p is being deleted."),
    ],
)
def test_why_names_what_keeps_the_pod_from_being_placed(state: str, words: str) -> None:
    manifest = copy.deepcopy(PODS_ASKED["half"])
    manifest["metadata"] |= {"namespace": "team", "uid": "u"}
    for part, changed in STATES[state].items():
        manifest[part] |= changed
    assert list(why_pod(view_of(ClusterObjects([], [], [manifest], [])), manifest)) == [words]
