"""Rules of a vocabulary about who shares a GPU: one isolation at a time, a number of sharers, whole memory."""

import pytest

from lamina.core.ledger import Taken, taken_by
from lamina.core.quota_room import QuotaLimit, QuotaRoom
from lamina.core.requests import ContainerRequest, PodRequest, SharingRules
from lamina.placement import Misfit, PodPlacement, fit
from lamina.placement.rules.refusal import Cause
from lamina.placement.search.fit import counted
from tests.placement.nodes import gpus, node

RULES = SharingRules(most=20, one_isolation=True, alone_below_mib=128)


def asks(memory: int, cores: int = 0, *, sharing: SharingRules = RULES, count: int = 1) -> PodRequest:
    one = ContainerRequest(container="main", count=count, memory_mib=memory, cores=cores, sharing=sharing)
    return PodRequest(dialect="cce", containers=(one,), gpu_policy="binpack", node_policy="binpack")


def after(*pods: PodRequest) -> dict[str, Taken]:
    """What is taken of a node with one GPU once these pods run there."""
    taken: dict[str, Taken] = {}
    for pod in pods:
        answer = fit(pod, node(gpus(1, slots=10), taken))
        assert isinstance(answer, PodPlacement)
        for uuid, more in taken_by(answer.containers).items():
            taken[uuid] = taken.get(uuid, Taken()).plus(more)
    return taken


def cause(pod: PodRequest, taken: dict[str, Taken]) -> Cause | None:
    answer = fit(pod, node(gpus(1, slots=10), taken))
    return answer.cause if isinstance(answer, Misfit) else None


FREE = SharingRules()


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        (asks(1280, 0), asks(1280, 0), False),
        (asks(1280, 25), asks(1280, 25), False),
        (asks(1280, 0), asks(1280, 25), True),
        (asks(1280, 25), asks(1280, 0), True),
        (asks(1280, 0, sharing=FREE), asks(1280, 25, sharing=FREE), False),
        (asks(1280, 25, sharing=FREE), asks(1280, 0, sharing=FREE), False),
        (asks(1280, 0, sharing=FREE), asks(1280, 25), True),
        (asks(1280, 25), asks(1280, 0, sharing=FREE), True),
        (asks(1280, 25), asks(1280, 30, sharing=FREE), False),
    ],
)
def test_s0_7_one_isolation_at_a_time(first: PodRequest, second: PodRequest, refused: bool) -> None:
    assert cause(second, after(first)) is (Cause.ISOLATION if refused else None)


def test_s0_7_the_reason_says_what_is_there() -> None:
    for first, second, there_is in [(asks(1280), asks(1280, 25), "without"), (asks(1280, 25), asks(1280), "with")]:
        answer = fit(second, node(gpus(1), after(first)))
        assert isinstance(answer, Misfit) and not answer.lasting
        assert answer.reason == f"the GPU is shared by containers {there_is} a share of its time"


def test_s0_6_twenty_share_a_gpu_whatever_its_slots() -> None:
    taken = after(*[asks(128)] * 20)
    assert cause(asks(128), taken) is Cause.SLOTS
    answer = fit(asks(128), node(gpus(1, slots=10), taken))
    assert isinstance(answer, Misfit) and answer.reason == "the GPU is shared by 20 containers already"


@pytest.mark.parametrize(("left", "alone"), [(0, True), (1, True), (127, True), (128, False), (1000, False)])
def test_s0_5_who_takes_all_of_the_memory_is_alone(left: int, alone: bool) -> None:
    [gpu] = gpus(1)
    pod = asks(gpu.capacity_mib - left)
    answer = fit(pod, node((gpu,)))
    assert isinstance(answer, PodPlacement)
    assert answer.containers[0].shares[0].exclusive is alone
    assert cause(pod, after(asks(128))) is (Cause.NOT_IDLE if alone else None)


@pytest.mark.parametrize(
    ("memory", "cores", "held"), [(128, 100, 16160), (16128, 0, 16160), (16128, 25, 16160), (16000, 95, 16000)]
)
def test_s0_5_who_is_alone_has_the_entire_gpu(memory: int, cores: int, held: int) -> None:
    """126 units of 128 MiB are all that a GPU of 126.25 units can be asked for."""
    answer = fit(asks(memory, cores), node(gpus(1, memory=16160)))
    assert isinstance(answer, PodPlacement)
    assert answer.containers[0].shares[0].memory_mib == held
    assert counted(answer.containers) == (held, cores), "and quotas count it"


def test_s0_5_a_quota_below_the_entire_gpu_refuses_it() -> None:
    for left, fits in [(16160, True), (16159, False)]:
        room = QuotaRoom(QuotaLimit("q", "gpumem", left, 0), None)
        answer = fit(asks(128, 100).within(room), node(gpus(1, memory=16160)))
        assert isinstance(answer, PodPlacement) is fits
        assert fits or (
            isinstance(answer, Misfit) and answer.cause is Cause.QUOTA and "requests 16160" in answer.reason
        )


def test_s0_5_who_takes_all_of_the_time_is_alone() -> None:
    answer = fit(asks(128, 100), node(gpus(1)))
    assert isinstance(answer, PodPlacement) and answer.containers[0].shares[0].exclusive
