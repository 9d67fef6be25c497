"""One GPU and one container: each rule of sharing at its edge, and the sentence of the miss."""

import pytest

from lamina.core.gpus import Gpu, Mode
from lamina.core.grants import ComputePolicy
from lamina.core.ledger import Taken, taken_by
from lamina.core.requests import ContainerRequest, GpuSelector
from lamina.placement import Cause, NodeState, PodPlacement, fit
from lamina.placement.rules.refusal import refusal_of_shares
from tests.placement.edges import EDGES, LIGHT
from tests.placement.nodes import ask, gpus, missed, node, placed, request, uuids


@pytest.mark.parametrize(("container", "taken", "cause"), EDGES)
def test_a_gpu_takes_a_container_or_gives_the_reason(
    container: ContainerRequest, taken: Taken, cause: Cause | None
) -> None:
    answer = fit(request(container), node(gpus(1), {"GPU-0": taken}))
    if cause is None:
        placed(answer)
    else:
        assert missed(answer).cause is cause


@pytest.mark.parametrize(("container", "taken", "cause"), EDGES)
def test_shares_that_are_chosen_are_refused_for_the_same_reason(
    container: ContainerRequest, taken: Taken, cause: Cause | None
) -> None:
    """Binding asks so, after other pods may have come. A share without cores stays when the time has been granted."""
    idle, busy = node(gpus(1)), node(gpus(1), {"GPU-0": taken})
    answer = fit(request(container), idle)
    if not isinstance(answer, PodPlacement):
        assert cause in (Cause.SIZE, Cause.QUOTA)
        return
    shares = taken_by(placed(answer).containers)["GPU-0"]
    assert refusal_of_shares(shares, busy.gpus[0]) is (None if cause is Cause.TIME else cause)


@pytest.mark.parametrize(
    ("shares", "cause"),
    [
        (Taken(1, 32768), None),
        (Taken(1, 32769), Cause.SIZE),
        (Taken(1, 1, 100), None),
        (Taken(1, 1, 101), Cause.SIZE),
        (Taken(10, 1), None),
        (Taken(11, 1), Cause.SLOTS),
        (Taken(1, 1, most=1), None),
        (Taken(2, 1, most=1), Cause.SLOTS),
    ],
)
def test_shares_beyond_the_whole_gpu_are_refused(shares: Taken, cause: Cause | None) -> None:
    assert refusal_of_shares(shares, node(gpus(1)).gpus[0]) is cause


@pytest.mark.parametrize(("taken", "cause"), [(LIGHT, None), (Taken(1, 1, 100), None), (Taken(1, 1, 101), Cause.CORES)])
def test_with_scaled_cores_100_percent_is_not_exclusive(taken: Taken, cause: Cause | None) -> None:
    answer = fit(request(ask(1, 100)), node(gpus(1, cores_capacity=200), {"GPU-0": taken}))
    if cause is None:
        assert not placed(answer).containers[0].shares[0].exclusive
    else:
        assert missed(answer).cause is cause


def test_a_whole_gpu_stays_exclusive_with_scaled_cores() -> None:
    answer = fit(request(ask()), node(gpus(1, cores_capacity=200), {"GPU-0": LIGHT}))
    assert missed(answer).cause is Cause.NOT_IDLE


def test_scaling_does_not_make_a_whole_gpu_larger_than_it_is() -> None:
    (share,) = placed(fit(request(ask()), node(gpus(1, scaling=3)))).containers[0].shares
    assert (share.mode, share.memory_mib) == (Mode.WHOLE, 32768)


@pytest.mark.parametrize(
    ("gpu", "selector", "cause"),
    [
        ({"healthy": False, "reason": "XID 79"}, GpuSelector(), Cause.UNHEALTHY),
        ({}, GpuSelector(types=("A100",)), Cause.TYPE),
        ({}, GpuSelector(types=("a100", "v100")), None),
        ({}, GpuSelector(types=("tesla v100-sxm2",)), None),
        ({}, GpuSelector(not_types=("V100",)), Cause.TYPE),
        ({}, GpuSelector(not_types=("A100",)), None),
        ({}, GpuSelector(uuids=("GPU-0",)), None),
        ({}, GpuSelector(uuids=("GPU-7",)), Cause.UUID),
        ({}, GpuSelector(uuids=("GPU",)), Cause.UUID),
        ({}, GpuSelector(not_uuids=("GPU-0",)), Cause.UUID),
        ({}, GpuSelector(not_uuids=("GPU-7",)), None),
        ({}, GpuSelector(types=("V100",), uuids=("GPU-0",), not_uuids=("GPU-0",)), Cause.UUID),
    ],
)
def test_wishes_and_health(gpu: dict[str, object], selector: GpuSelector, cause: Cause | None) -> None:
    answer = fit(request(ask(1), selector=selector), node(gpus(1, **gpu)))
    if cause is None:
        placed(answer)
    else:
        assert missed(answer).cause is cause
        assert missed(answer).lasting


@pytest.mark.parametrize(("count", "there"), [(1, 1), (2, 2), (2, 1), (8, 8), (9, 8)])
def test_n_gpus_are_n_different_ones(count: int, there: int) -> None:
    answer = fit(request(ask(1000, count=count)), node(gpus(there)))
    if count <= there:
        assert len(set(uuids(answer))) == count
    else:
        assert missed(answer).cause is Cause.COUNT
        assert missed(answer).reason == f"needs {count} GPUs; this node has {there}"
        assert missed(answer).lasting


def test_a_percentage_is_of_each_gpus_own_capacity() -> None:
    mixed = (*gpus(1), Gpu(uuid="GPU-big", index=1, model="A100", memory_mib=40960, capacity_mib=40960))
    shares = placed(fit(request(ask(percent=50, count=2)), node(mixed))).containers[0].shares
    assert {share.gpu: share.memory_mib for share in shares} == {"GPU-0": 16384, "GPU-big": 20480}


@pytest.mark.parametrize("policy", list(ComputePolicy))
def test_the_compute_policy_is_that_of_the_pod_where_there_is_something_to_hold(policy: ComputePolicy) -> None:
    def share_of(container: ContainerRequest, cores: int = 100) -> ComputePolicy:
        answer = fit(request(container, compute_policy=policy), node(gpus(1, cores_capacity=cores)))
        return placed(answer).containers[0].shares[0].compute_policy

    assert share_of(ask(1, 30)) is policy
    assert share_of(ask(1, 100), cores=200) is policy
    assert share_of(ask(1, 0)) is ComputePolicy.NONE
    assert share_of(ask(1, 100)) is ComputePolicy.NONE
    assert share_of(ask()) is ComputePolicy.NONE


def test_a_grant_carries_what_the_agent_needs() -> None:
    state = NodeState.of("n", gpus(1, scaling=2), {}, log_level=4)
    grant = placed(fit(request(ask(1000, 20, name="c", priority=0, init=True, sidecar=True)), state)).containers[0]
    assert (grant.name, grant.priority, grant.init, grant.sidecar) == ("c", 0, True, True)
    assert (grant.oversubscribed, grant.log_level) == (True, 4)
    whole = placed(fit(request(ask()), state)).containers[0]
    assert (whole.oversubscribed, whole.shares[0].mode) == (False, Mode.WHOLE)
