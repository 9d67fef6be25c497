"""Replays: nothing over-committed, departures, pods that stay, what-if, and what is reported at the end."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.core.gpus import Gpu
from lamina.errors import BadInput
from lamina.operations.simulate import SimNode, SimPod, replay
from lamina.operations.simulate.what_if import added, shared, whole, without
from lamina.simulation.policies import POLICIES
from lamina.simulation.replay import Replay
from tests.placement.nodes import ask, request


def node(name: str = "n0", gpus: int = 2, *, cpu: int = 8000, memory: int = 1000, **rest: Any) -> SimNode:
    listed = tuple(
        Gpu(uuid=f"{name}-{i}", index=i, model="M", **{"memory_mib": memory, "capacity_mib": memory, **rest})
        for i in range(gpus)
    )
    return SimNode(name=name, cpu=cpu, memory_mib=10000, gpus=listed)


def pod(name: str, memory: int | None = 600, cores: int = 0, *, count: int = 1, cpu: int = 100, **rest: Any) -> SimPod:
    asked = None if memory == 0 else request(ask(memory, cores, count=count))
    return SimPod(name=name, cpu=cpu, memory_mib=10, request=asked, **rest)


@pytest.mark.parametrize("policy", list(POLICIES))
@pytest.mark.parametrize("unusable", [{"healthy": False}, {"cordoned": True}])
@pytest.mark.parametrize("place", [0, 1])
def test_the_other_gpus_of_a_node_are_used(policy: str, unusable: dict[str, bool], place: int) -> None:
    whole = node()
    gpus = [msgspec.structs.replace(gpu, **unusable) if at == place else gpu for at, gpu in enumerate(whole.gpus)]
    cluster = [msgspec.structs.replace(whole, gpus=tuple(gpus))]
    result = replay(cluster, [pod("p0", 300), pod("p1", 300), pod("p2", 600)], policy)
    assert (result.placed, result.waiting) == (2, ("p2",))


@pytest.mark.parametrize("policy", list(POLICIES))
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_nothing_is_over_committed_and_all_pods_are_reported(policy: str, data: st.DataObject) -> None:
    nodes = [node(f"n{i}", data.draw(st.integers(0, 3)), cpu=data.draw(st.integers(0, 1000))) for i in range(3)]
    pods = [
        pod(
            f"p{i}",
            data.draw(st.sampled_from([0, 300, 600, None])),
            data.draw(st.sampled_from([0, 30])),
            count=data.draw(st.integers(1, 2)),
            created=float(i),
            deleted=data.draw(st.sampled_from([None, i + 2.0])),
        )
        for i in range(data.draw(st.integers(1, 90)))
    ]
    run = Replay(nodes, pods, policy)
    departures = data.draw(st.booleans())
    result = run.run(departures=departures, keep=False, progress=lambda done: None)
    assert (run.capacity.cpu >= 0).all() and (run.capacity.memory >= 0).all()
    for row in range(len(nodes)):
        for state in run.capacity.state(row).gpus:
            assert state.taken.memory_mib <= state.gpu.capacity_mib and state.taken.cores <= state.gpu.cores_capacity
            assert not state.taken.whole or state.taken.slots == 1
    if not departures:
        assert result.placed + len(result.waiting) == len(pods)
    assert sum(number for _, number in result.reasons) == len(result.waiting)
    assert all(0 <= point.allocated <= 1.0001 and 0 <= point.stranded <= 1.0001 for point in result.points)


def test_binpack_and_spread_differ_in_what_is_left_for_a_whole_gpu() -> None:
    nodes, pods = [node("n0", 1), node("n1", 1)], [pod("a", 300), pod("b", 300), pod("whole", None)]
    assert replay(nodes, pods, "binpack").waiting == ()
    spread = replay(nodes, pods, "spread")
    assert spread.waiting == ("whole",)
    assert spread.reasons == (
        ("0 of 2 nodes fit: 2 without an idle GPU; nearest is n0: whole GPU needed; it is not idle", 1),
    )
    assert (spread.end.asked, spread.end.allocated) == (pytest.approx(0.8), pytest.approx(0.3))


def test_stranded_is_what_the_usual_pods_cannot_use() -> None:
    result = replay([node("n0", 1)], [pod("a", 600), pod("b", 600)], "binpack")
    assert result.end.stranded == pytest.approx(1.0) and result.end.waiting == 1
    assert replay([node("n0", 2)], [pod("a", 600)], "binpack").end.stranded == pytest.approx(0.4 / 1.4)


def test_a_pod_that_ends_frees_capacity_for_one_that_waits() -> None:
    pods = [pod("a", created=0, deleted=10), pod("b", created=1, deleted=20), pod("c", created=11, deleted=12)]
    assert replay([node(gpus=1)], pods, "binpack").waiting == ("b", "c")
    moved = replay([node(gpus=1)], pods, "binpack", departures=True)
    assert (moved.placed, moved.waiting) == (2, ("c",)), "b came first and waits first"


def test_pods_that_run_can_stay_where_they_are() -> None:
    nodes = [node("n0", 1), node("n1", 1)]
    pods = [pod("a", 300, node="n0"), pod("b", 300, node="n1"), pod("whole", None)]
    assert replay(nodes, pods, "binpack").waiting == ()
    assert replay(nodes, pods, "binpack", keep=True).waiting == ("whole",)


def test_stranded_cpu_is_reported() -> None:
    result = replay([node(cpu=50)], [pod("a"), pod("plain", 0)], "binpack")
    assert dict(result.reasons) == {
        "1 of 1 nodes have the GPUs, but none of them has enough CPU and memory": 1,
        "no node has the CPU and memory": 1,
    }


def test_what_if() -> None:
    nodes = [node("n0"), node("n1")]
    more = [*nodes, *added("2:A100-SXM4-40GB:4", nodes)]
    assert [len(each.gpus) for each in more] == [2, 2, 4, 4] and len({each.name for each in more}) == 4
    assert [each.name for each in without(more, "added-*")] == ["n0", "n1"]
    [changed] = shared([node()], slots=3, memory_scaling=1.5, core_scaling=2)
    assert {(gpu.slots, gpu.capacity_mib, gpu.cores_capacity) for gpu in changed.gpus} == {(3, 1500, 200)}
    pods = [pod(f"p{number}", 500) for number in range(4)]
    assert replay([node()], pods, "binpack").placed == 4
    assert replay([node()], whole(pods), "binpack").placed == 2
    assert replay(shared([node()], slots=1, memory_scaling=None, core_scaling=None), pods, "binpack").placed == 2


@pytest.mark.parametrize("written", ["", "2", "x:T4:1", "2:T4:0", "2:T4:65", "1:RTX 9:1"])
def test_nodes_that_cannot_be_added(written: str) -> None:
    with pytest.raises(BadInput, match=r"--add-nodes|there is no GPU model"):
        added(written, [])


def test_names_that_mean_nothing() -> None:
    with pytest.raises(BadInput, match="there is no policy 'best'; known are binpack, spread"):
        replay([node()], [pod("a")], "best")
    with pytest.raises(BadInput, match="matches none of 1 nodes"):
        without([node()], "x*")
