"""Pod groups are placed whole or not at all, within their time, over real HTTP."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lamina.control import gangs
from lamina.control.gangs import Gangs
from lamina.control.ledger import DoesNotFit
from lamina.dialects.groups import GROUP_ANNOTATION, GROUP_LABEL
from lamina.ports.kube import GRANTS, PLUGIN_POD_GROUPS, PODS, VOLCANO_POD_GROUPS, Object
from lamina.ports.kube.fake import FakeKube
from tests.control.binders import Bench
from tests.control.cluster import Running, admitted_pod, gpus, running

NODES = ("node-0", "node-1")


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    monkeypatch.setattr(gangs, "WAIT_S", 0.3)
    async with running(FakeKube(), tmp_path, *[(node, gpus(1, prefix=node)) for node in NODES]) as made:
        yield made


def member(group: str, number: int, *, volcano: bool = False, memory: int = 20000) -> Object:
    pod = admitted_pod(f"{group}-{number}", gpumem=memory)
    meta = pod["metadata"]
    if volcano:
        meta["annotations"] = {GROUP_ANNOTATION: group}
    else:
        meta["labels"] = {GROUP_LABEL: group}
    return pod


async def group(cluster: Any, name: str, minimum: Any, *, volcano: bool = False, **spec: Any) -> None:
    kind = VOLCANO_POD_GROUPS if volcano else PLUGIN_POD_GROUPS
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": minimum, **spec}}
    await cluster.kube.create(kind, body)


async def tried(cluster: Running, pod: Object) -> str:
    """One attempt of kube-scheduler: filter, then bind on the first node. Nothing, or why not."""
    answer = await cluster.scheduler.filter(pod, *NODES)
    if not answer["nodenames"]:
        return str(answer["error"] or next(iter(answer["failedNodes"].values())))
    return await cluster.scheduler.bind(pod, answer["nodenames"][0])


async def scheduled(cluster: Running, *pods: Object) -> list[str]:
    """Attempts as kube-scheduler makes them: filters one after the other, bindings beside that."""
    binds = []
    said: dict[int, str] = {}
    for place, pod in enumerate(pods):
        answer = await cluster.scheduler.filter(pod, *NODES)
        if answer["nodenames"]:
            binds.append((place, asyncio.create_task(cluster.scheduler.bind(pod, answer["nodenames"][0]))))
        else:
            said[place] = str(answer["error"] or next(iter(answer["failedNodes"].values())))
    return [(said | {place: await task for place, task in binds})[place] for place in range(len(pods))]


async def bound(cluster: Any) -> set[str]:
    pods = (await cluster.kube.list(PODS)).items
    return {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}


@pytest.mark.parametrize("volcano", [False, True])
async def test_a_group_is_bound_together(cluster: Running, volcano: bool) -> None:
    await group(cluster, "a", 2, volcano=volcano)
    pods = [await cluster.make(member("a", number, volcano=volcano)) for number in range(2)]
    assert await scheduled(cluster, *pods) == ["", ""]
    assert await bound(cluster) == {"a-0", "a-1"}
    late = await cluster.make(member("a", 2, volcano=volcano, memory=1000))
    assert await tried(cluster, late) == "", "beyond the minimum a member goes where it fits"


async def test_a_group_that_does_not_fit_whole_holds_nothing_and_says_why(cluster: Running) -> None:
    await group(cluster, "a", 3)
    pods = [await cluster.make(member("a", number)) for number in range(3)]
    why = "pod group default/a is placed whole or not at all: it needs 3 places at once and 2 are free"
    assert await scheduled(cluster, *pods) == [why] * 3
    other = await cluster.make(admitted_pod("other", gpumem=32768))
    assert await tried(cluster, other) == ""
    assert await bound(cluster) == {"other"}


async def test_a_group_waits_for_its_members(cluster: Running) -> None:
    await group(cluster, "a", 2)
    first = await cluster.make(member("a", 0))
    assert await tried(cluster, first) == "pod group default/a waits for its members: 1 of 2 are there"
    assert await bound(cluster) == set() and not (await cluster.kube.list(GRANTS)).items


async def test_places_are_held_while_members_come_one_by_one(cluster: Running) -> None:
    await group(cluster, "a", 2)
    first, second = [await cluster.make(member("a", number)) for number in range(2)]
    assert await tried(cluster, first) == "pod group default/a waits for its members: 1 of 2 have come so far"
    stranger = await cluster.make(admitted_pod("stranger", gpumem=20000))
    assert "MiB free" in await tried(cluster, stranger), "both places are held"
    assert await tried(cluster, second) == "", "the first has come before"
    assert await tried(cluster, first) == ""
    assert await bound(cluster) == {"a-0", "a-1"}


async def test_two_groups_for_the_same_gpus_run_one_after_the_other(cluster: Running) -> None:
    for name in "ab":
        await group(cluster, name, 2)
    a = [await cluster.make(member("a", number)) for number in range(2)]
    b = [await cluster.make(member("b", number)) for number in range(2)]
    waiting, first = [a[0], b[0], a[1], b[1]], set[str]()
    for _ in range(5):
        said = await scheduled(cluster, *waiting)
        waiting = [pod for pod, why in zip(waiting, said, strict=True) if why]
        if first := await bound(cluster):
            break
    assert first in ({"a-0", "a-1"}, {"b-0", "b-1"})
    for name in first:
        await cluster.kube.delete(PODS, name, namespace="default")
    for _ in range(5):
        await asyncio.sleep(0.05)
        said = await scheduled(cluster, *waiting)
        waiting = [pod for pod, why in zip(waiting, said, strict=True) if why]
    assert await bound(cluster) == {"a-0", "a-1", "b-0", "b-1"} - first


@pytest.mark.parametrize("minimum", [0, -1, "two", None])
async def test_a_group_without_sense_is_not_placed(cluster: Running, minimum: Any) -> None:
    pod = await cluster.make(member("a", 0))
    assert await tried(cluster, pod) == "pod group default/a (scheduling.x-k8s.io/v1alpha1) does not exist"
    await group(cluster, "a", minimum)
    sentence = f"pod group default/a has the minMember {minimum!r}; allowed is a whole number from 1"
    assert await tried(cluster, pod) == sentence


async def test_members_without_gpus_count_as_there(cluster: Running) -> None:
    await group(cluster, "a", 2)
    launcher = admitted_pod("launcher")
    launcher["metadata"]["labels"] = {GROUP_LABEL: "a"}
    await cluster.make(launcher)
    assert await tried(cluster, await cluster.make(member("a", 0))) == ""


async def test_time_is_limited_and_another_group_gets_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gangs, "WAIT_S", 0.01)
    bench = Bench()
    bench.offer("node-0", *gpus(2))
    made = Gangs(bench.kube, bench.capacity, bench.decisions, bench.configuration, now=bench.clock)
    await group(bench, "a", 2, scheduleTimeoutSeconds=30)
    pods = [await bench.kube.create(PODS, member("a", number)) for number in range(2)]
    assert "1 of 2 have come" in await made.wait(bench.args(pods[0], "node-0"))
    assert [bench.memory(gpu=f"GPU-{number}") for number in range(2)] == [20000, 20000]
    bench.clock.time += 29
    assert "1 of 2 have come" in await made.wait(bench.args(pods[0], "node-0"))
    bench.clock.time += 1
    why = "pod group default/a gave up: 1 of 2 members came in time; it begins again soon"
    assert await made.wait(bench.args(pods[0], "node-0")) == why
    assert [bench.memory(gpu=f"GPU-{number}") for number in range(2)] == [0, 0]
    bench.clock.time += gangs.REST_S
    assert "1 of 2 have come" in await made.wait(bench.args(pods[0], "node-0"))
    assert await made.wait(bench.args(pods[1], "node-0")) == ""


async def test_a_pod_of_no_group_is_not_asked_about_again() -> None:
    bench = Bench()
    bench.offer("node-0", *gpus(1))
    made = Gangs(bench.kube, bench.capacity, bench.decisions, bench.configuration, now=bench.clock)
    pod = await bench.pod("p", gpumem=1000)
    filtered = bench.decisions.filter(pod, ["node-0"])
    assert await made.narrow(pod, filtered) is filtered
    made._kube = None  # type: ignore[assignment]
    assert await made.wait(bench.args(pod, "node-0")) == ""


async def test_places_are_held_for_all_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gangs, "WAIT_S", 0.01)
    bench = Bench()
    bench.offer("node-0", *gpus(2))
    made = Gangs(bench.kube, bench.capacity, bench.decisions, bench.configuration, now=bench.clock)
    await group(bench, "a", 2)
    pods = [await bench.kube.create(PODS, member("a", number)) for number in range(2)]
    real = bench.ledger.reserve

    def reserve(uid: str, *rest: Any) -> None:
        if uid == pods[1]["metadata"]["uid"]:
            raise DoesNotFit("pod default/a-1 has ended")
        real(uid, *rest)

    monkeypatch.setattr(bench.ledger, "reserve", reserve)
    assert await made.wait(bench.args(pods[0], "node-0")) == "pod default/a-1 has ended"
    assert [bench.memory(gpu=f"GPU-{number}") for number in range(2)] == [0, 0]
