"""What workloads could request, and which pods are idle, by what agents know of their use."""

from typing import Any

from lamina.core.gpus import Mode
from lamina.operations.advise.shares import advise_shares, idle_shares
from lamina.operations.advise.use_histories import HistoryOwner, PastUse, UseOverTime, read_use_over_time
from lamina.ports.kube import Object
from lamina.report.cluster_reader import read
from lamina.report.cluster_view import ClusterView
from tests.operations.advise.use_pages import history_lines, idle_line
from tests.operations.agent_pages import serve
from tests.worlds.clusters import T4, cluster, container, grant, inventory, pod

WEB = HistoryOwner("default", "Deployment", "web", "main")


def replica(name: str, memory: int = 8000, cores: int = 50, **share: Any) -> tuple[Object, Object]:
    """A pod of the Deployment web and its grant."""
    made = pod(name, container(gpu=1, gpumem=memory), node="n")
    made["metadata"]["labels"] = {"pod-template-hash": "5d9c"}
    made["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "web-5d9c", "controller": True}]
    held = grant(made, "n", memory)
    held["spec"]["containers"][0]["shares"][0] |= {"cores": cores} | share
    return made, held


async def view(*pods: tuple[Object, Object]) -> ClusterView:
    return await read(await cluster(inventory("n", 2), *(each for both in pods for each in both)))


def used(**figures: Any) -> UseOverTime:
    return UseOverTime(histories={WEB: PastUse(**{"observed_s": 90_000} | figures)})


async def test_advice_leaves_room_above_what_was_used() -> None:
    seen = await view(replica("a"), replica("b"))
    [row] = advise_shares(seen, used(memory_peak_mib=2000, compute_percent=10.0))
    assert (row.kind, row.workload, row.shares) == ("Deployment", "web", 2)
    assert (row.memory_mib, row.memory_advised_mib) == (8000, 2304)
    assert (row.cores, row.cores_advised) == (50, 15)
    assert row.memory_gain == 2 * (8000 - 2304) / T4 and row.compute_gain == 2 * 0.35


async def test_no_advice_asks_for_more_than_is_requested() -> None:
    seen = await view(replica("a"))
    assert advise_shares(seen, used(memory_peak_mib=8000, compute_percent=50.0)) == []
    [row] = advise_shares(seen, used(memory_peak_mib=100, compute_percent=100.0))
    assert (row.memory_advised_mib, row.cores_advised) == (256, 50)


async def test_compute_that_is_not_known_is_left_as_it_is() -> None:
    [row] = advise_shares(await view(replica("a")), used(memory_peak_mib=2000))
    assert (row.compute_percent, row.cores_advised, row.compute_gain) == (None, 50, 0)


async def test_a_whole_gpu_counts_with_all_of_its_compute() -> None:
    whole = replica("a", T4, 0, mode=Mode.WHOLE.value, exclusive=True)
    [row] = advise_shares(await view(whole), used(memory_peak_mib=1000, compute_percent=30.0))
    assert (row.cores, row.cores_advised) == (100, 40)


async def test_what_is_not_known_for_long_enough_is_left_out() -> None:
    seen, use = await view(replica("a")), used(memory_peak_mib=100)
    assert advise_shares(seen, use, min_s=100_000) == []
    assert advise_shares(seen, use, namespace="other") == []
    assert advise_shares(seen, UseOverTime()) == []
    cut = replica("a", 4864, 0, mode="mig", mig={"profile": "1g.5gb", "start": 0})
    assert advise_shares(await view(cut), use) == []


async def test_idle_pods_are_listed_the_longest_first() -> None:
    seen = await view(replica("a"), replica("b"), replica("c"))
    idle = {("default", name, "GPU-n-0"): 100.0 * number for number, name in enumerate("abc", start=1)}
    rows = idle_shares(seen, UseOverTime(idle_s=idle), min_s=200)
    assert [(row.pod, row.idle_s, row.index, row.memory_mib) for row in rows] == [
        ("c", 300.0, 0, 8000),
        ("b", 200.0, 0, 8000),
    ]
    assert idle_shares(seen, UseOverTime(idle_s=idle), namespace="x", min_s=0) == []


async def test_the_figures_of_nodes_are_put_together() -> None:
    kube = await cluster()
    first = history_lines("n", WEB, peak_mib=100, compute=30, observed_s=50) + idle_line("n", "a", "GPU-0", 7.0)
    serve(kube, "n", first + history_lines("other", WEB, peak_mib=999, compute=99, observed_s=99))
    serve(kube, "m", history_lines("m", WEB, peak_mib=300, compute=20, observed_s=70))
    use = await read_use_over_time(kube, ["n", "m", "gone"], [])
    assert use.histories == {WEB: PastUse(300, 30.0, 120.0)}
    assert use.idle_s == {("default", "a", "GPU-0"): 7.0} and list(use.silent) == ["gone"]
