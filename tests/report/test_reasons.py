"""`lamina why` and the reasons in `lamina pods`, for every state in which a pod may be."""

from typing import Any

import msgspec
import pytest

from lamina.core.gpus import Inventory, MigDeviceCount, NativeResource
from lamina.core.grants import ContainerGrant, Share
from lamina.core.mig_devices import NO_STRATEGY
from lamina.core.survivors import Survivor
from lamina.dialects.groups import GROUP_ANNOTATION
from lamina.ports.kube import INVENTORIES, NODES, RESOURCE_QUOTAS, Object
from lamina.report import cluster_reader
from lamina.report.cluster_use import ClusterUse
from lamina.report.gpus import GpuRow, gpu_rows
from lamina.report.reasons import pod_named, waiting_because
from tests.report.lines import why
from tests.worlds.clusters import cluster, container, grant, inventory, pod


async def explained(of: Object, *others: Any) -> tuple[list[str], str]:
    """What `why` says of a pod, and its reason in a table."""
    view = await cluster_reader.read(await cluster(of, *others))
    (read,) = (each for each in view.pods if each["metadata"]["uid"] == of["metadata"]["uid"])
    return list(why(view, "default", of["metadata"]["name"])), waiting_because(view, read)


NO_ANSWER = "kube-scheduler had no answer from the controller of Lamina; see `lamina doctor`"


def unscheduled(message: str | None, status: str = "False") -> Object:
    condition = {"type": "PodScheduled", "status": status} | ({} if message is None else {"message": message})
    return {"conditions": [{"type": "Initialized", "status": "False", "message": "no"}, condition]}


def states(*waiting: Any, part: str = "containerStatuses") -> Object:
    """Container statuses: each a reason, a reason with its message, or None for one that runs."""
    statuses = []
    for index, each in enumerate(waiting):
        reason, message = each if isinstance(each, tuple) else (each, None)
        state = (
            {"waiting": {"reason": reason} | ({"message": message} if message else {})} if reason else {"running": {}}
        )
        statuses.append({"name": f"c{index}", "state": state})
    return {part: statuses}


async def test_tickets_that_a_pod_without_a_grant_has_are_the_reason_and_the_pod_is_named() -> None:
    culprit = pod("culprit", container(gpu=10), namespace="team", node="n", schedulerName="mine")
    waits = pod("p", container(gpu=1, gpumem=1000))
    lines, reason = await explained(waits, culprit, inventory())
    assert lines[0].startswith("p is pending") and "pods without a grant have 10 of 10 nvidia.com/gpu" in lines[0]
    assert "  pod team/culprit has 10 nvidia.com/gpu of node n without a grant; delete it" in lines
    assert "pods without a grant" in reason and "culprit" not in reason
    view = await cluster_reader.read(await cluster(waits, culprit, inventory()))
    assert "Lamina did not place it: it has 10 nvidia.com/gpu" in list(why(view, "team", "culprit"))[-1]


async def test_tickets_that_are_left_are_enough_and_other_nodes_have_theirs() -> None:
    waits = pod("p", container(gpu=1, gpumem=1000))
    few = pod("few", container(gpu=9), node="n", schedulerName="mine")
    assert (await explained(waits, few, inventory()))[0][0].startswith("p would fit now")
    all_of_n = pod("culprit", container(gpu=10), node="n", schedulerName="mine")
    lines, _ = await explained(waits, all_of_n, inventory(), inventory("m"))
    assert lines[0].startswith("p would fit now") and "1 of 2 nodes: m" in lines[0]


async def held(*holds: Any, of: Object, others: tuple[Any, ...] = ()) -> tuple[list[str], list[GpuRow]]:
    """What `why` says, and the rows of `lamina gpus`, where the controller lists this room as held on node n."""
    kube = await cluster(of, inventory(), *others)
    await kube.patch(INVENTORIES, "n", {"status": {"holds": list(holds)}}, subresource="status")
    view = await cluster_reader.read(kube)
    return list(why(view, "default", of["metadata"]["name"])), gpu_rows(view, ClusterUse())


def hold(name: str, memory_mib: int, until: int = 4102444800) -> Object:
    """Until the year 2100, unless it says otherwise."""
    owner = {"namespace": "default", "pod": name, "podUID": f"uid-default-{name}"}
    return owner | {"gpu": "GPU-n-0", "memoryMiB": memory_mib, "until": until}


async def test_room_that_is_held_for_a_group_is_not_free_in_any_view_and_its_owner_is_named() -> None:
    waits, member = pod("p", container(gpu=1, gpumem=10000)), pod("a-0", container(gpu=1, gpumem=12000))
    member["metadata"]["annotations"] = {GROUP_ANNOTATION: "a"}
    lines, (row,) = await held(hold("a-0", 12000), of=waits, others=(member,))
    assert lines[0].startswith("p is pending") and "3360" in lines[0]
    assert "  12000 MiB of GPU 0 of node n are held for pod group default/a until 00:00:00 UTC at the latest" in lines
    assert (row.memory_granted_mib, row.memory_free_mib, row.pods) == (12000, 3360, ("default/a-0 (held)",))
    own, _ = await held(hold("a-0", 12000), of=member, others=(waits,))
    assert own[0].startswith("a-0 would fit now"), "its own room is free for it"


@pytest.mark.parametrize("end", [{}, {"until": 4102444800}])
async def test_what_pods_leave_to_a_nominated_pod_is_not_free_and_what_they_still_hold_counts_once(end: Object) -> None:
    waits, high = pod("p", container(gpu=1, gpumem=6000)), pod("high", container(gpu=1, gpumem=12000))
    victim = pod("low", container(gpu=1, gpumem=8000), node="n")
    victim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    room = {key: value for key, value in hold("high", 12000).items() if key != "until"} | {"nominated": True} | end
    until = "00:00:00 UTC at the latest" if end else "it is bound"
    line = f"  12000 MiB of GPU 0 of node n are held for pod default/high, for which pods are evicted, until {until}"
    for left, granted in (((victim, grant(victim, "n", 8000)), 12000), ((), 12000)):
        lines, (row,) = await held(room, of=waits, others=(high, *left))
        assert lines[0].startswith("p is pending") and "3360" in lines[0] and line in lines
        assert (row.memory_granted_mib, row.memory_free_mib) == (granted, 3360)
        assert "default/high (held)" in row.pods
    own, _ = await held(room, of=high, others=(waits,))
    assert own[0].startswith("high would fit now"), "its own room is free for it"


@pytest.mark.parametrize(
    "listed",
    [hold("a-0", 12000, until=1000), hold("gone", 12000), {"pod": 7}, hold("a-0", 12000) | {"gpu": "GPU-elsewhere"}],
    ids=["over", "of a pod that is gone", "unreadable", "of another GPU"],
)
async def test_what_is_not_held_any_more_does_not_count(listed: Object) -> None:
    waits, member = pod("p", container(gpu=1, gpumem=10000)), pod("a-0", container(gpu=1, gpumem=12000))
    lines, (row,) = await held(listed, of=waits, others=(member,))
    assert lines[0].startswith("p would fit now") and row.memory_free_mib == 15360


async def test_native_devices_are_no_tickets() -> None:
    waits, user = pod("p", container(gpu=1)), pod("q", container(gpu=1), node="n", schedulerName="mine")
    assert (await explained(waits, user, inventory(gpu=4)))[0][0].startswith("p would fit now")


@pytest.mark.parametrize(("namespace", "name"), [("default", "absent"), ("other", "p"), ("", "p"), ("default", "")])
async def test_a_pod_that_does_not_exist(namespace: str, name: str) -> None:
    view = await cluster_reader.read(await cluster(pod("p", container())))
    assert pod_named(view, namespace, name) is None


async def test_a_pod_that_runs_is_not_pending() -> None:
    assert await explained(pod("p", container(gpu=1), node="n")) == (["p is not pending: it is Running on node n."], "")


@pytest.mark.parametrize(
    ("status", "reasons"),
    [
        (states(None, None), []),
        (states("ContainerCreating", "PodInitializing"), []),
        (states("ImagePullBackOff"), ["c0: ImagePullBackOff"]),
        (states(None, ("CrashLoopBackOff", "back-off 10s")), ["c1: CrashLoopBackOff: back-off 10s"]),
        (states("A", "B"), ["c0: A", "c1: B"]),
        (states("A", part="initContainerStatuses"), ["c0: A"]),
        ({"phase": "Failed", "message": "GPU-1 is not healthy"}, ["GPU-1 is not healthy"]),
        ({"phase": "Failed"}, ["it has failed"]),
        ({"phase": "Failed", "reason": "Evicted"}, ["Evicted"]),
        ({"phase": "Pending"}, ["its containers are being created"]),
        ({"phase": "Pending"} | states("ContainerCreating"), ["its containers are being created"]),
        ({"phase": "Pending"} | states("ImagePullBackOff"), ["c0: ImagePullBackOff"]),
        ({"phase": "Running", "message": "fine"}, []),
        ({"containerStatuses": [{"name": "c", "state": {"waiting": {}}}, {"name": "d"}]}, []),
    ],
)
async def test_a_pod_on_a_node_says_what_its_containers_wait_for(status: Object, reasons: list[str]) -> None:
    of = pod("p", container(gpu=1), node="n", status=status)
    lines, reason = await explained(of)
    phase = of["status"]["phase"]
    if reasons:
        head = f"p is on node n ({phase}), and its containers are waiting:"
        assert lines == [head, *(f"  {each}" for each in reasons)]
    else:
        assert lines == [f"p is not pending: it is {phase} on node n."]
    assert reason == "; ".join(reasons)


async def test_init_containers_come_first() -> None:
    of = pod("p", node="n", status=states("Main") | states("Init", part="initContainerStatuses"))
    assert (await explained(of))[1] == "c0: Init; c0: Main"


async def test_a_pod_without_gpus_is_somebody_elses_question() -> None:
    lines, _ = await explained(pod("p", container()))
    assert lines == ["p requests no GPU; `kubectl describe pod` shows why it is pending."]


async def test_a_pod_that_counts_native_devices_is_kube_schedulers() -> None:
    lines, reason = await explained(pod("p", container(mig_1g_5gb=1)))
    assert lines == ["p requests nvidia.com/mig-1g.5gb, which kube-scheduler counts itself."]
    assert reason == "not yet tried by the scheduler"
    lines, _ = await explained(pod("p", container("a", mig_1g_5gb=1), container("b", gpu_shared=1)))
    assert lines[0].startswith("p requests nvidia.com/mig-1g.5gb and nvidia.com/gpu.shared, which")


def mig_node(name: str, *devices: MigDeviceCount, offered: int = 0) -> Inventory:
    resources = [NativeResource("nvidia.com/mig-1g.5gb", offered)] if offered else []
    return Inventory(node=name, native_resources=tuple(resources), mig_devices=devices)


async def test_mig_devices_that_are_not_offered_are_named_with_what_to_set() -> None:
    withheld = MigDeviceCount(profile="1g.5gb", count=28, reason=NO_STRATEGY)
    single = MigDeviceCount(profile="1g.5gb", count=7, resource="nvidia.com/gpu")
    other = MigDeviceCount(profile="2g.10gb", count=3, reason=NO_STRATEGY)
    nodes = [mig_node("a", withheld), mig_node("b", single), mig_node("c", other)]
    lines, _ = await explained(pod("p", container(mig_1g_5gb=1)), *nodes)
    assert lines[1:] == [
        "  a has 28 such devices, but the MIG strategy is none; set it to mixed (hami.migStrategy, or mig.strategy in "
        "Lamina's own form)",
        "  b has 7 such devices, but offers them as nvidia.com/gpu; request that",
    ]


async def test_nodes_that_offer_too_few_devices_are_named_with_their_number() -> None:
    offering = MigDeviceCount(profile="1g.5gb", count=2, resource="nvidia.com/mig-1g.5gb")
    lines, _ = await explained(pod("p", container(mig_1g_5gb=3)), mig_node("a", offering, offered=2))
    assert lines[1:] == ["  a: needs 3 nvidia.com/mig-1g.5gb; this node offers 2"]


async def test_what_admission_would_refuse_is_the_reason() -> None:
    lines, reason = await explained(pod("p", container(gpumem=-1)), inventory())
    assert "nvidia.com/gpumem must be an integer" in reason
    assert lines == [f"p cannot be placed: {reason}"]


async def test_a_quota_comes_before_the_nodes() -> None:
    kube = await cluster(pod("p", container(gpu=1, gpumem=2000)), inventory())
    hard = {"limits.nvidia.com/gpumem": "1000"}
    await kube.create(RESOURCE_QUOTAS, {"metadata": {"name": "team", "namespace": "default"}, "spec": {"hard": hard}})
    view = await cluster_reader.read(kube)
    (line,) = why(view, "default", "p")
    reason = "quota team allows 1000 of nvidia.com/gpumem; 0 are used and the pod requests 2000"
    assert waiting_because(view, view.pods[0]) == reason
    assert line == f"p is pending: {reason}."


@pytest.mark.parametrize(
    ("status", "extra", "reason"),
    [
        ({}, [], "not yet tried by the scheduler"),
        (unscheduled("0/3 nodes are available"), ["Scheduler: 0/3 nodes are available"], "0/3 nodes are available"),
        (unscheduled('Post "https://10.0.0.1:443/filter": EOF'), [f"Scheduler: {NO_ANSWER}"], NO_ANSWER),
        (unscheduled("all is well", status="True"), [], "not yet tried by the scheduler"),
        (unscheduled(None), [], "not yet tried by the scheduler"),
    ],
)
async def test_a_pod_that_would_fit_now(status: Object, extra: list[str], reason: str) -> None:
    lines, because = await explained(pod("p", container(gpu=1, gpumem=1000), status=status), inventory())
    assert lines[0].startswith("p would fit now, as far as GPUs are concerned: ")
    assert lines[1:] == extra and because == reason


async def test_a_member_of_a_group_would_fit_without_the_others() -> None:
    of = pod("p", container(gpu=1, gpumem=1000))
    of["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "team"}
    lines, _ = await explained(of, inventory())
    assert lines[0].startswith("p would fit now without the rest of its group, as far as GPUs are concerned: ")


async def test_the_only_node_is_named_once() -> None:
    lines, reason = await explained(pod("p", container(gpu=1, gpumem=99999)), inventory())
    assert lines == [f"p is pending: {reason}."]
    assert reason == "node n: needs 99999 MiB; the largest GPU has 15360 MiB"


@pytest.mark.parametrize(
    ("nodes", "shown"), [(2, "n0, n1"), (5, "n0, n1, n2, n3, n4"), (7, "n0, n1, n2, n3, n4 and 2 more")]
)
async def test_equal_nodes_are_one_line(nodes: int, shown: str) -> None:
    of = pod("p", container(gpu=1, gpumem=99999))
    lines, _ = await explained(of, *(inventory(f"n{number}") for number in range(nodes)))
    assert lines[1:] == [f"  {shown}: needs 99999 MiB; the largest GPU has 15360 MiB"]


async def test_without_nodes_there_is_only_a_summary() -> None:
    lines, reason = await explained(pod("p", container(gpu=1, gpumem=1000)))
    assert lines == [f"p is pending: {reason}."]


def outlived(*pods: str, namespace: str = "default", uid: str = "gone") -> Inventory:
    """The inventory of a node on which processes of these pods hold 8000 MiB each."""
    containers = (ContainerGrant(name="main", shares=(Share(gpu="GPU-n-0", memory_mib=8000),)),)
    survivors = tuple(
        Survivor(namespace=namespace, pod=name, pod_uid=f"{uid}-{name}", containers=containers) for name in pods
    )
    return msgspec.structs.replace(inventory(), survivors=survivors)


async def test_processes_of_deleted_pods_are_named_as_what_is_in_the_way() -> None:
    lines, reason = await explained(pod("p", container(gpu=1, gpumem=10000)), outlived("old"))
    assert lines == [
        "p is pending: node n: needs 10000 MiB; the best GPU has 7360 MiB free.",
        "  pod default/old is deleted, but its processes still hold 8000 MiB of GPU 0 of node n",
    ]
    assert reason == "node n: needs 10000 MiB; the best GPU has 7360 MiB free"


async def test_few_of_many_survivors_are_named() -> None:
    lines, _ = await explained(pod("p", container(gpu=1, gpumem=10000)), outlived(*(f"old-{n}" for n in range(8))))
    assert len(lines) == 7 and lines[-1] == "  the processes of 3 more deleted pods still run"


async def test_a_pod_that_fits_or_that_runs_is_told_of_no_survivors() -> None:
    assert len((await explained(pod("p", container(gpu=1, gpumem=1000)), outlived("old")))[0]) == 1
    living = pod("q", container(gpu=1), node="n")
    held = msgspec.structs.replace(outlived("q").survivors[0], pod_uid=living["metadata"]["uid"])
    late = msgspec.structs.replace(inventory(), survivors=(held,))
    (line,) = (await explained(pod("p", container(gpu=1, gpumem=10000)), late, living, grant(living, "n", 8000)))[0]
    assert line == "p is pending: node n: needs 10000 MiB; the best GPU has 7360 MiB free.", "it counts once"


async def test_a_pod_that_only_an_agent_knows_is_in_no_namespace() -> None:
    kube = await cluster(pod("p", container(gpu=1, gpumem=10000)), outlived("old"), confirmed=False)
    lines = list(why(await cluster_reader.read(kube), "default", "p"))
    assert lines[1] == "  pod ?/old is deleted, but its processes still hold 8000 MiB of GPU 0 of node n"
    kube = await cluster(pod("p", container(gpu=1, gpumem=3000)), outlived("old"), confirmed=False)
    hard = {"spec": {"hard": {"limits.nvidia.com/gpumem": "10000"}}}
    await kube.create(RESOURCE_QUOTAS, {"metadata": {"name": "q", "namespace": "default"}} | hard)
    assert next(iter(why(await cluster_reader.read(kube), "default", "p"))).startswith("p would fit now")


@pytest.mark.parametrize(("namespace", "named"), [("default", True), ("other", False)])
async def test_a_quota_is_used_by_survivors_of_its_namespace(namespace: str, named: bool) -> None:
    kube = await cluster(pod("p", container(gpu=1, gpumem=3000)), outlived("old", namespace=namespace))
    hard = {"spec": {"hard": {"limits.nvidia.com/gpumem": "10000" if named else "2000"}}}
    await kube.create(RESOURCE_QUOTAS, {"metadata": {"name": "q", "namespace": "default"}} | hard)
    lines = list(why(await cluster_reader.read(kube), "default", "p"))
    assert "quota q allows" in lines[0]
    assert any("default/old" in line for line in lines) == named and len(lines) == 1 + named


async def test_why_gives_the_reasons_of_kube_scheduler_that_fits_gives() -> None:
    of = pod("p", container(gpu=1, gpumem=1000), nodeSelector={"pool": "a"})
    kube = await cluster(of, inventory("a"), inventory("b"))
    for read, expected in (
        (await cluster_reader.read(kube), "p would fit now, as far as GPUs are concerned: fits on 2 of 2 nodes: a, b."),
        (
            await cluster_reader.read(kube, hosts=True),
            "p is pending: 0 of 2 nodes fit: 2 not selected by the pod; nearest is a: the node does not have the label "
            "pool=a that the pod selects.",
        ),
    ):
        assert next(iter(why(read, "default", "p"))) == expected
    await kube.patch(NODES, "b", {"metadata": {"labels": {"pool": "a"}}})
    first, second = why(await cluster_reader.read(kube, hosts=True), "default", "p")
    assert first == "p would fit now: fits on 1 of 2 nodes: b."
    assert second == "  a: the node does not have the label pool=a that the pod selects"


async def test_pods_that_differ_in_their_selector_alone_have_reasons_of_their_own() -> None:
    chosen, free = (
        pod("chosen", container(gpu=1, gpumem=1000), nodeSelector={"pool": "a"}),
        pod("free", container(gpu=1, gpumem=1000)),
    )
    view = await cluster_reader.read(await cluster(chosen, free, inventory()), hosts=True)
    assert [bool(waiting_because(view, each).startswith("node n: ")) for each in view.pods] == [True, False]
