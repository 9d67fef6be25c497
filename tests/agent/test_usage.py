"""What a GPU in use accepts: the one rule for what is offered and for what may start."""

import itertools

import pytest

from lamina.agent.inventory.usage import GpuUse, check_instances, check_uses, devices_in_use, is_free_for, may_join
from lamina.agent.state.holdings import Bound, Holding
from lamina.core.gpus import Gpu, MigInstance, Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.errors import NotYet

GPU = "GPU-a"
NATIVE = "nvidia.com/gpu"
TOGETHER = (Mode.WHOLE, Mode.QUOTA, Mode.TIMESLICE)


def held(
    mode: Mode, ticket: str = "ticket-0", *, pod: str = "p", claim: bool = False, start: int | None = None
) -> Holding:
    part = None if start is None else MigInstance(profile="1g.5gb", start=start)
    grant = ContainerGrant(name="main", shares=(Share(gpu=GPU, memory_mib=100, mode=mode, mig=part),))
    bound = Bound(namespace="d", pod=pod, pod_uid=pod, container="main", grant=grant, of_claim=claim)
    return Holding(name=pod, tickets=frozenset({ticket}), resource="" if claim else NATIVE, bound=bound)


@pytest.mark.parametrize(("wanted", "mode"), list(itertools.product(Mode, Mode)))
@pytest.mark.parametrize("resource", ["", NATIVE])
def test_a_gpu_is_in_one_mode(wanted: Mode, mode: Mode, resource: str) -> None:
    assert may_join(GpuUse(wanted, resource), GpuUse(mode, resource)) == (
        wanted is mode or (wanted in TOGETHER and mode in TOGETHER)
    )


@pytest.mark.parametrize("mode", Mode)
def test_a_gpu_has_one_door(mode: Mode) -> None:
    grant, native, claim = GpuUse(mode), GpuUse(mode, NATIVE), GpuUse(mode, claimed=True)
    doors = (grant, native, claim)
    assert [[may_join(one, other) for other in doors] for one in doors] == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]


@pytest.mark.parametrize(("wanted", "mode"), list(itertools.product(Mode, Mode)))
def test_the_room_decides_between_claims(wanted: Mode, mode: Mode) -> None:
    assert may_join(GpuUse(wanted, claimed=True), GpuUse(mode, claimed=True))


@pytest.mark.parametrize(
    ("wanted", "other", "words"),
    [
        (GpuUse(Mode.MPS), held(Mode.QUOTA), "is in mode quota as long as pod d/p uses it, and .* mode mps$"),
        (GpuUse(Mode.WHOLE, NATIVE), held(Mode.WHOLE), "one with a grant and the other without"),
        (GpuUse(Mode.QUOTA), held(Mode.WHOLE, GPU), "one with a grant and the other without"),
        (GpuUse(Mode.QUOTA), held(Mode.QUOTA, claim=True), "in use by the ResourceClaim d/p; the container waits"),
        (GpuUse(Mode.QUOTA, claimed=True), held(Mode.QUOTA), "in use by pod d/p through the device plugin"),
    ],
)
def test_what_is_in_the_way_is_named(wanted: GpuUse, other: Holding, words: str) -> None:
    with pytest.raises(NotYet, match=words):
        check_uses([(GPU, wanted)], [other])
    check_uses([("GPU-b", wanted)], [other])
    check_uses([(GPU, wanted)], [])


def test_kubelets_word_counts_for_claims_before_the_container_is_known() -> None:
    assigned = Holding(name="n", tickets=frozenset({f"{GPU}::1"}), resource=NATIVE)
    with pytest.raises(NotYet, match=f"{GPU} is in use through the device plugin"):
        check_uses([(GPU, GpuUse(Mode.QUOTA, claimed=True))], [assigned])


def test_an_instance_has_one_pod() -> None:
    starting = [each for each in (held(Mode.MIG, start=0).bound,) if each]
    check_instances(starting, [held(Mode.MIG, start=0)])
    check_instances(starting, [held(Mode.MIG, pod="q", start=1)])
    with pytest.raises(NotYet, match=f"1g.5gb at 0 of {GPU} is in use by pod d/q"):
        check_instances(starting, [held(Mode.MIG, pod="q", start=0)])


@pytest.mark.parametrize("mode", [Mode.WHOLE, Mode.TIMESLICE, Mode.MPS])
@pytest.mark.parametrize("other", [held(mode, ticket) for mode in Mode for ticket in ("ticket-0", GPU)])
def test_what_is_offered_may_start(mode: Mode, other: Holding) -> None:
    gpu = Gpu(uuid=GPU, index=0, model="m", memory_mib=1000, capacity_mib=1000, slots=2)
    if is_free_for(gpu, devices_in_use([other]), NATIVE, mode):
        check_uses([(GPU, GpuUse(mode, NATIVE))], [other])
