"""Pod groups are placed whole or not at all, within their time, over real HTTP."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lamina.controller.gangs import coordinator, records
from lamina.dialects.containers import quote
from lamina.dialects.groups import GROUP_ANNOTATION, GROUP_APIS, GROUP_LABEL, KUBERNETES
from lamina.dialects.workload_groups import MIN_MEMBERS
from lamina.ledger.holds import Hold
from lamina.ledger.ledger import DoesNotFit
from lamina.ports.clock import FakeClock
from lamina.ports.kube import GRANTS, PODS, VOLCANO_POD_GROUPS, Object
from lamina.ports.kube.fake import FakeKube
from tests.controller.binders import Bench
from tests.controller.cluster import RunningController, running
from tests.controller.pod_groups import answer, group, member
from tests.waiting import until
from tests.worlds.objects import admitted_pod, gpus
from tests.worlds.workload_pods import RESOURCES, SPECS, metadata_of

NODES = ("node-0", "node-1")


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[RunningController]:
    nodes = [(node, gpus(1, prefix=node)) for node in NODES]
    async with running(FakeKube(), tmp_path, *nodes, clock=FakeClock()) as made:
        yield made


async def tried(cluster: RunningController, pod: Object) -> str:
    """One attempt of kube-scheduler: filter, then bind on the first node. Nothing, or why not."""
    answer = await cluster.scheduler.filter(pod, *NODES)
    if not answer["nodenames"]:
        return str(answer["error"] or next(iter(answer["failedNodes"].values())))
    return await bind(cluster, pod, answer["nodenames"][0])


async def bind(cluster: RunningController, pod: Object, node: str) -> str:
    """A binding waits for members by the clock, which goes on meanwhile."""
    binding = asyncio.create_task(cluster.scheduler.bind(pod, node))
    await until(binding.done, clock=cluster.clock)
    return binding.result()


async def scheduled(cluster: RunningController, *pods: Object) -> list[str]:
    """Attempts as kube-scheduler makes them: filters one after the other, bindings at the same time."""
    binds = []
    reasons: dict[int, str] = {}
    for place, pod in enumerate(pods):
        answer = await cluster.scheduler.filter(pod, *NODES)
        if answer["nodenames"]:
            binds.append((place, asyncio.create_task(bind(cluster, pod, answer["nodenames"][0]))))
        else:
            reasons[place] = str(answer["error"] or next(iter(answer["failedNodes"].values())))
    return [(reasons | {place: await task for place, task in binds})[place] for place in range(len(pods))]


async def bound(cluster: Any) -> set[str]:
    pods = (await cluster.kube.list(PODS)).items
    return {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}


@pytest.mark.parametrize("api", sorted(GROUP_APIS))
async def test_a_group_is_bound_together(cluster: RunningController, api: str) -> None:
    await group(cluster, "a", 2, api=api)
    pods = [await cluster.make(member("a", number, api=api)) for number in range(2)]
    assert await scheduled(cluster, *pods) == ["", ""]
    assert await bound(cluster) == {"a-0", "a-1"}
    late = await cluster.make(member("a", 2, api=api, memory=1000))
    assert await tried(cluster, late) == "", "beyond the minimum a member goes where it fits"


async def members_of(
    cluster: RunningController, kind: str, count: int = 3, memory: int = 20000, **annotations: Any
) -> list[Object]:
    """Pods of a workload. Two of 20000 MiB go on the nodes together."""
    pods = []
    for number in range(count):
        pod = admitted_pod(f"w-{number}", gpumem=memory)
        made = metadata_of(kind, "w", number)
        made["annotations"] = made.get("annotations", {}) | annotations
        pod["metadata"] |= made
        pods.append(await cluster.make(pod))
    return pods


async def make_workload(cluster: RunningController, kind: str) -> None:
    body = {"metadata": {"name": "w", "namespace": "default"}, "spec": SPECS[kind]}
    await cluster.kube.create(RESOURCES[kind], body)


@pytest.mark.parametrize("kind", SPECS)
async def test_the_pods_of_a_workload_are_bound_together(cluster: RunningController, kind: str) -> None:
    await make_workload(cluster, kind)
    pods = await members_of(cluster, kind, memory=10000)
    assert await scheduled(cluster, *pods) == ["", "", ""]
    assert await bound(cluster) == {"w-0", "w-1", "w-2"}


@pytest.mark.parametrize("kind", SPECS)
async def test_the_pods_of_a_workload_that_do_not_fit_together_wait(cluster: RunningController, kind: str) -> None:
    await make_workload(cluster, kind)
    pods = await members_of(cluster, kind)
    part = " (0)" if kind == "LeaderWorkerSet" else ""
    assert await tried(cluster, pods[0]) == (
        f"{kind} default/w{part} is placed completely or not at all: 3 members must be placed at once, but only 2 can "
        "be placed now"
    )


@pytest.mark.parametrize("kind", SPECS)
async def test_the_pods_of_a_workload_that_is_gone_are_placed_one_by_one(cluster: RunningController, kind: str) -> None:
    pods = await members_of(cluster, kind)
    assert [await tried(cluster, pod) for pod in pods[:2]] == ["", ""]


async def test_an_annotation_says_how_many_pods_of_a_workload_run_together(cluster: RunningController) -> None:
    await make_workload(cluster, "Job")
    assert await scheduled(cluster, *await members_of(cluster, "Job", 2, **{MIN_MEMBERS: "2"})) == ["", ""]


@pytest.mark.parametrize("said", ["-1", "two", "1001", "1.5", "99999999999999999999", "\N{SUPERSCRIPT TWO}"])
async def test_an_annotation_that_says_no_number_is_refused(cluster: RunningController, said: str) -> None:
    [pod] = await members_of(cluster, "Job", 1, **{MIN_MEMBERS: said})
    assert (await tried(cluster, pod)).startswith(
        f"Job default/w: annotation {MIN_MEMBERS} must be an integer from 0 to 1000, got "
    )


async def test_a_group_that_does_not_fit_whole_holds_nothing_and_says_why(cluster: RunningController) -> None:
    await group(cluster, "a", 3)
    pods = [await cluster.make(member("a", number)) for number in range(3)]
    members = "3 members must be placed at once, but only 2 can be placed now"
    why = f"pod group default/a is placed completely or not at all: {members}"
    assert await scheduled(cluster, *pods) == [why] * 3
    other = await cluster.make(admitted_pod("other", gpumem=32768))
    assert await tried(cluster, other) == ""
    assert await bound(cluster) == {"other"}


async def test_a_group_waits_for_its_members(cluster: RunningController) -> None:
    await group(cluster, "a", 2)
    first = await cluster.make(member("a", 0))
    assert await tried(cluster, first) == "pod group default/a waits for its members: 1 of 2 exist"
    assert await bound(cluster) == set() and not (await cluster.kube.list(GRANTS)).items


async def test_places_are_held_while_members_come_one_by_one(cluster: RunningController) -> None:
    await group(cluster, "a", 2)
    first, second = [await cluster.make(member("a", number)) for number in range(2)]
    assert await tried(cluster, first) == "pod group default/a waits for its members: 1 of 2 are ready to be bound"
    stranger = await cluster.make(admitted_pod("stranger", gpumem=20000))
    assert "MiB free" in await tried(cluster, stranger), "both places are held"
    assert await tried(cluster, second) == "", "the first has come before"
    assert await tried(cluster, first) == ""
    assert await bound(cluster) == {"a-0", "a-1"}


async def test_two_groups_for_the_same_gpus_run_one_after_the_other(cluster: RunningController) -> None:
    for name in "ab":
        await group(cluster, name, 2)
    a = [await cluster.make(member("a", number)) for number in range(2)]
    b = [await cluster.make(member("b", number)) for number in range(2)]
    waiting, first = [a[0], b[0], a[1], b[1]], set[str]()
    for _ in range(5):
        reasons = await scheduled(cluster, *waiting)
        waiting = [pod for pod, why in zip(waiting, reasons, strict=True) if why]
        if first := await bound(cluster):
            break
    assert first in ({"a-0", "a-1"}, {"b-0", "b-1"})
    for name in first:
        await cluster.kube.delete(PODS, name, namespace="default")

    async def others_are_bound() -> bool:
        reasons = await scheduled(cluster, *waiting)
        waiting[:] = [pod for pod, why in zip(waiting, reasons, strict=True) if why]
        return not waiting

    await until(others_are_bound)
    assert await bound(cluster) == {"a-0", "a-1", "b-0", "b-1"} - first


@pytest.mark.parametrize("minimum", [0, -1, "two", None])
async def test_a_group_without_sense_is_not_placed(cluster: RunningController, minimum: Any) -> None:
    pod = await cluster.make(member("a", 0))
    assert await tried(cluster, pod) == "pod group default/a (scheduling.x-k8s.io/v1alpha1) does not exist"
    await group(cluster, "a", minimum)
    sentence = f"pod group default/a: minMember must be an integer from 1 to 1000, got {minimum!r}"
    assert await tried(cluster, pod) == sentence


@pytest.mark.parametrize(
    "policy", [{}, {"gang": {}}, {"gang": {"minCount": 0}}, {"gang": {"minCount": 1001}}, {"gang": None, "basic": None}]
)
async def test_a_group_of_kubernetes_says_how_many_members_it_needs(cluster: RunningController, policy: Any) -> None:
    pod = await cluster.make(member("a", 0, api=KUBERNETES))
    assert await tried(cluster, pod) == "pod group default/a (scheduling.k8s.io/v1alpha2) does not exist"
    await group(cluster, "a", 1, api=KUBERNETES, schedulingPolicy=policy)
    assert "schedulingPolicy.gang.minCount must be an integer from 1 to 1000, got" in await tried(cluster, pod)


async def test_members_of_a_basic_group_are_placed_one_by_one(cluster: RunningController) -> None:
    await group(cluster, "a", 1, api=KUBERNETES, schedulingPolicy={"basic": {}})
    pods = [await cluster.make(member("a", number, api=KUBERNETES)) for number in range(3)]
    assert [bool(await tried(cluster, pod)) for pod in pods] == [False, False, True]


@pytest.mark.parametrize(
    "name",
    ["../../../../../../api/v1/pods?watch=true&x=", "..", ".", "a/b", "A", "a\nb", "a_b", "-a", "a..b", "a" * 254, "é"],
)
async def test_a_group_name_that_is_no_name_is_refused_unread(name: str) -> None:
    bench = Bench()
    bench.offer("node-0", *gpus(2))
    made = bench.coordinator()
    pod = admitted_pod("a", gpumem=20000)
    pod["metadata"] |= {"uid": "uid-a", "annotations": {GROUP_ANNOTATION: name}}
    pod = await bench.kube.create(PODS, pod)
    sentence = (
        "annotation scheduling.k8s.io/group-name must be the name of a PodGroup, at most 253 lower-case letters, "
        f"digits, hyphens and periods, got {quote(name)}"
    )
    narrowed = await made.restrict(bench.parse(pod), bench.scheduler.filter(bench.parse(pod), ["node-0"]))
    assert narrowed.fitting == [] and narrowed.summary == sentence
    assert await answer(bench, made, pod, "node-0") == sentence
    assert (await made.companions(bench.parse(pod)))("node-0") is None
    assert VOLCANO_POD_GROUPS not in [resource for _, resource, _ in bench.kube.calls]


async def test_members_without_gpus_count_as_there(cluster: RunningController) -> None:
    await group(cluster, "a", 2)
    launcher = admitted_pod("launcher")
    launcher["metadata"]["labels"] = {GROUP_LABEL: "a"}
    await cluster.make(launcher)
    assert await tried(cluster, await cluster.make(member("a", 0))) == ""


async def test_the_last_member_is_known_when_it_comes_and_those_before_are_to_be_tried_again() -> None:
    """Members come within the second for which a reading of the group is fresh."""
    bench = Bench()
    bench.offer("node-0", *gpus(2))
    made = bench.coordinator()
    await group(bench, "a", 3)
    pods, answers = [], []
    for number in range(3):
        pod = await bench.kube.create(PODS, member("a", number, memory=10000))
        parsed = bench.parse(pod)
        result = await made.restrict(parsed, bench.scheduler.filter(parsed, ["node-0"]))
        pods.append(pod["metadata"]["uid"])
        bench.context.pending.observe_try(parsed, result.summary, 0.0)
        answers.append(result.summary or result.fitting[0])
    waiting = "pod group default/a waits for its members: {} of 3 exist"
    assert answers == [waiting.format(1), waiting.format(2), "node-0"]
    assert [pod.uid for pod in bench.context.pending if pod.place_found] == pods[:2]


async def test_a_pod_of_another_scheduler_holds_no_places() -> None:
    bench = Bench()
    bench.offer("node-0", *gpus(2))
    made = bench.coordinator()
    await group(bench, "a", 2)
    foreign = member("a", 0)
    foreign["spec"]["schedulerName"] = "mine"
    pods = [await bench.kube.create(PODS, pod) for pod in (foreign, member("a", 1))]
    assert await answer(bench, made, pods[0], "node-0") == ""
    assert [bench.memory(gpu=f"GPU-{number}") for number in range(2)] == [0, 0]
    assert "names the scheduler mine" in await bench.bind(pods[0])


async def test_time_is_limited_and_another_group_gets_its_turn() -> None:
    bench = Bench()
    bench.offer("node-0", *gpus(2))
    made = bench.coordinator()
    await group(bench, "a", 2, scheduleTimeoutSeconds=30)
    pods = [await bench.kube.create(PODS, member("a", number)) for number in range(2)]
    assert "1 of 2 are ready" in await answer(bench, made, pods[0], "node-0")
    assert [bench.memory(gpu=f"GPU-{number}") for number in range(2)] == [20000, 20000]
    bench.clock.time += 29 - records.WAIT_S
    assert "1 of 2 are ready" in await answer(bench, made, pods[0], "node-0")
    bench.clock.time += 1
    why = "pod group default/a gave up: 1 of 2 members were ready to be bound in time; it starts again soon"
    assert await answer(bench, made, pods[0], "node-0") == why
    assert [bench.memory(gpu=f"GPU-{number}") for number in range(2)] == [0, 0]
    bench.clock.time += coordinator.PAUSE_S
    assert "1 of 2 are ready" in await answer(bench, made, pods[0], "node-0")
    assert await answer(bench, made, pods[1], "node-0") == ""


async def test_a_pod_of_no_group_is_not_asked_about_again() -> None:
    bench = Bench()
    bench.offer("node-0", *gpus(1))
    made = bench.coordinator()
    pod = await bench.pod("p", gpumem=1000)
    filtered = bench.scheduler.filter(bench.parse(pod), ["node-0"])
    assert await made.restrict(bench.parse(pod), filtered) is filtered
    made._kube = None  # type: ignore[assignment]
    assert await answer(bench, made, pod, "node-0") == ""


async def test_places_are_held_for_all_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.offer("node-0", *gpus(2))
    made = bench.coordinator()
    await group(bench, "a", 2)
    pods = [await bench.kube.create(PODS, member("a", number)) for number in range(2)]
    real = bench.ledger.hold

    def hold(wanted: Hold) -> None:
        if wanted.uid == pods[1]["metadata"]["uid"]:
            raise DoesNotFit("pod default/a-1 has ended")
        real(wanted)

    monkeypatch.setattr(bench.ledger, "hold", hold)
    assert await answer(bench, made, pods[0], "node-0") == "pod default/a-1 has ended"
    assert [bench.memory(gpu=f"GPU-{number}") for number in range(2)] == [0, 0]


async def test_a_finished_member_counts_and_the_one_in_the_place_of_a_failed_one_is_placed(
    cluster: RunningController,
) -> None:
    await group(cluster, "a", 2)
    pods = [await cluster.make(member("a", number)) for number in range(2)]
    assert await scheduled(cluster, *pods) == ["", ""]
    for pod, phase in zip(pods, ("Succeeded", "Failed"), strict=True):
        await cluster.kube.patch(PODS, pod["metadata"]["name"], {"status": {"phase": phase}}, namespace="default")
    again = await cluster.make(member("a", 2))

    async def placed() -> bool:
        return await tried(cluster, again) == ""

    await until(placed, task=cluster.task, clock=cluster.clock, step_s=0.5)


async def test_for_a_member_that_a_gate_holds_nothing_is_held(cluster: RunningController) -> None:
    await group(cluster, "a", 2)
    gated = member("a", 1)
    gated["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    await cluster.make(gated)
    why = "pod group default/a waits for its members: 1 of 2 exist; a-1 is held by the gate kueue.x-k8s.io/admission"
    assert await tried(cluster, await cluster.make(member("a", 0))) == why
    for number in range(2):
        assert await tried(cluster, await cluster.make(admitted_pod(f"other-{number}", gpumem=32768))) == ""
