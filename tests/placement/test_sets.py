"""Several GPUs: connected ones together, bound to one NUMA node, idle ones only; and GPUs that are cordoned."""

from typing import Any

import msgspec
import pytest

from lamina.core.claims import HeldClaim
from lamina.core.gpus import Gpu, Inventory, Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.core.ledger import Taken
from lamina.core.requests import GpuSelector
from lamina.placement import Cause, NodeState, explain, fit
from tests.placement.nodes import ask, gpus, missed, node, request, uuids

BUSY = Taken(1, 1000, 10)


def linked(pairs: dict[tuple[int, int], int], *, count: int = 4, others: int = 10, **rest: Any) -> tuple[Gpu, ...]:
    """GPUs of which these pairs are connected better than all the others."""
    return tuple(
        msgspec.structs.replace(
            gpu,
            links=tuple(
                0 if i == j else pairs.get((min(i, j), max(i, j)), others) for j in range(count)
            ),
        )
        for i, gpu in enumerate(gpus(count, **rest))
    )  # fmt: skip


def on_numa(*nodes: int | None) -> tuple[Gpu, ...]:
    return tuple(msgspec.structs.replace(gpu, numa=numa) for gpu, numa in zip(gpus(len(nodes)), nodes, strict=True))


PAIRED = linked({(0, 3): 400, (1, 2): 200})


def test_two_gpus_are_the_best_connected_pair_that_fits() -> None:
    pod = request(ask(20000, count=2), gpu_policy="topology-aware")
    assert uuids(fit(pod, node(PAIRED))) == ["GPU-0", "GPU-3"]
    assert uuids(fit(pod, node(PAIRED, {"GPU-3": Taken(1, 20000, 0)}))) == ["GPU-1", "GPU-2"]


def test_one_gpu_is_the_one_whose_loss_hurts_least() -> None:
    pod = request(ask(20000), gpu_policy="topology-aware")
    assert uuids(fit(pod, node(PAIRED))) == ["GPU-1"]
    assert uuids(fit(pod, node(PAIRED, {"GPU-3": Taken(1, 20000, 0)}))) == ["GPU-0"], "its partner is away"


def test_three_gpus_have_the_highest_sum_and_not_the_best_pair() -> None:
    triangle = {(1, 2): 100, (1, 3): 100, (2, 3): 100, (0, 1): 150}
    pod = request(ask(1000, count=3), gpu_policy="topology-aware")
    assert uuids(fit(pod, node(linked(triangle)))) == ["GPU-1", "GPU-2", "GPU-3"]


def test_ties_are_broken_by_the_other_order() -> None:
    same = linked({}, count=3)
    for order, expected in (("binpack", ["GPU-1", "GPU-0"]), ("spread", ["GPU-0", "GPU-2"])):
        pod = request(ask(1000, count=2), gpu_policy=f"topology-aware,{order}")
        assert uuids(fit(pod, node(same, {"GPU-1": BUSY}))) == expected


def test_a_connection_that_one_side_does_not_report_counts_nothing() -> None:
    one_sided = list(PAIRED)
    one_sided[3] = msgspec.structs.replace(one_sided[3], links=(10, 10, 10, 0))
    pod = request(ask(1000, count=2), gpu_policy="topology-aware")
    assert uuids(fit(pod, node(one_sided))) == ["GPU-1", "GPU-2"]


def test_without_connections_the_order_decides() -> None:
    pod = request(ask(1000, count=2), gpu_policy="topology-aware")
    assert uuids(fit(pod, node(gpus(3)))) == ["GPU-0", "GPU-1"]


def test_large_nodes_grow_their_sets_and_still_find_the_island() -> None:
    island = {(i, j): 600 for i in range(4, 12) for j in range(i + 1, 12)}
    pod = request(ask(1000, count=8), gpu_policy="topology-aware")
    chosen = uuids(fit(pod, node(linked(island, count=16))))
    assert sorted(int(uuid.partition("-")[2]) for uuid in chosen) == list(range(4, 12))


def test_containers_side_by_side_are_connected_too() -> None:
    pod = request(ask(20000, count=2, name="a"), ask(20000, count=2, name="b"), gpu_policy="topology-aware")
    answer = fit(pod, node(PAIRED))
    assert [set(uuids(answer, place)) for place in (0, 1)] == [{"GPU-0", "GPU-3"}, {"GPU-1", "GPU-2"}]


def test_numa_bind_keeps_a_container_on_one_numa_node() -> None:
    pod = request(ask(20000, count=2), numa_bind=True)
    assert uuids(fit(pod, node(on_numa(0, 1, 1, 0)))) == ["GPU-0", "GPU-3"]
    assert uuids(fit(pod, node(on_numa(0, 1, 1, 0), {"GPU-0": Taken(1, 20000, 0)}))) == ["GPU-1", "GPU-2"]
    assert uuids(fit(request(ask(20000, count=2)), node(on_numa(0, 1, 1, 0)))) == ["GPU-0", "GPU-3"]
    assert uuids(fit(request(ask(20000, count=3)), node(on_numa(0, 1, 1, 0)))) == ["GPU-0", "GPU-3", "GPU-1"]


@pytest.mark.parametrize(("numas", "lasting"), [((0, 0, 1, 1), False), ((0, 1, 2), True), ((None, None), True)])
def test_numa_bind_says_why_not(numas: tuple[int | None, ...], lasting: bool) -> None:
    taken = {"GPU-0": Taken(1, 20000, 0), "GPU-2": Taken(1, 20000, 0)} if not lasting else {}
    answer = missed(fit(request(ask(20000, count=2), numa_bind=True), node(on_numa(*numas), taken)))
    assert answer.cause is Cause.APART
    assert answer.reason == "needs 2 GPUs on one NUMA node; at most 1 fit on one"
    assert answer.lasting is lasting


def test_idle_gpus_only() -> None:
    pod = request(ask(1000), selector=GpuSelector(idle=True))
    assert uuids(fit(pod, node(gpus(2), {"GPU-0": BUSY}))) == ["GPU-1"]
    answer = missed(fit(pod, node(gpus(2), {"GPU-0": BUSY, "GPU-1": BUSY})))
    assert (answer.cause, answer.lasting) == (Cause.NOT_IDLE, False)
    assert answer.reason == "idle GPU needed; none of 2 is idle"


def test_a_native_device_takes_no_share() -> None:
    [first, second] = gpus(2)
    plain = msgspec.structs.replace(first, native_resource="nvidia.com/gpu.shared")
    answer = missed(fit(request(ask(1000)), node((plain,))))
    assert (answer.cause, answer.lasting) == (Cause.MODE, True)
    assert answer.reason == (
        "this node offers its GPUs only as nvidia.com/gpu.shared, without shares of memory or compute"
    )
    left = msgspec.structs.replace(second, mode=Mode.TIMESLICE)
    answer = missed(fit(request(ask(1000)), node((left,))))
    assert answer.reason == "running pods use the GPU by timeslice; it can be shared when they have ended"
    busy = msgspec.structs.replace(second, mode=Mode.QUOTA)
    assert uuids(fit(request(ask(1000)), node((plain, busy)))) == ["GPU-1"]


@pytest.mark.parametrize(
    ("claimed", "others", "reason"),
    [
        (("GPU-0",), 0, "ResourceClaims hold the GPU; it can be shared when their pods have ended"),
        (("GPU-0", "GPU-1"), 0, "ResourceClaims hold each GPU; it can be shared when their pods have ended"),
        (
            ("GPU-0",),
            1,
            "ResourceClaims hold 1 of 2 GPUs, and running pods use the others by timeslice; they can be shared when "
            "these pods have ended",
        ),
    ],
)
def test_a_gpu_that_claims_hold_says_so(claimed: tuple[str, ...], others: int, reason: str) -> None:
    used = tuple(msgspec.structs.replace(gpu, mode=Mode.TIMESLICE) for gpu in gpus(len(claimed) + others))
    requests = tuple(ContainerGrant(name=gpu, shares=(Share(gpu=gpu, memory_mib=1000),)) for gpu in claimed)
    held = HeldClaim(namespace="n", name="c", uid="u", requests=requests)
    state = NodeState.of("n", Inventory(node="n", driver="", gpus=used, claims=(held,)))
    answer = missed(fit(request(ask(1000)), state))
    assert (answer.cause, answer.reason) == (Cause.MODE, reason)


def test_a_cordoned_gpu_takes_no_new_pod() -> None:
    first, second = gpus(2)
    closed = msgspec.structs.replace(first, cordoned=True)
    assert uuids(fit(request(ask(1000)), node((closed, second)))) == ["GPU-1"]
    answer = missed(fit(request(ask(1000)), node((closed,))))
    assert (answer.cause, answer.lasting, answer.reason) == (Cause.CORDONED, True, "the GPU is cordoned")
    both = node((closed, msgspec.structs.replace(second, cordoned=True)))
    assert explain(request(ask(1000)), [both, both]).summary.startswith(
        "0 of 2 nodes fit: 2 with cordoned GPUs; nearest"
    )
