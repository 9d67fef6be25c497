"""What must hold for any pods on any node: nothing is over-committed, refusals are exact, and sentences are true."""

import itertools
import re
from collections.abc import Iterator, Sequence
from itertools import permutations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lamina.core.gpus import Gpu
from lamina.core.grants import ContainerGrant, Share
from lamina.core.ledger import NOTHING, Taken, taken_by
from lamina.core.requests import PodRequest
from lamina.placement import Cause, Misfit, PodPlacement, explain, fit
from tests.placement.nodes import add, missed, node
from tests.placement.strategies import gpu_lists, pods, takens


def check_node(of: Sequence[Gpu], running: Sequence[PodPlacement]) -> None:
    """No GPU gives more than it has, and a GPU that a pod has to itself has no other pod."""
    held = [taken_by(placement.containers) for placement in running]
    for gpu in of:
        here = [taken[gpu.uuid] for taken in held if gpu.uuid in taken]
        assert sum(taken.memory_mib for taken in here) <= gpu.capacity_mib
        assert sum(taken.cores for taken in here) <= gpu.cores_capacity
        assert sum(taken.slots for taken in here) <= max(gpu.slots, *(taken.most for taken in here), 0)
        for one, other in permutations(here, 2):
            assert not (one.one_isolation and one.cores and other.without_cores)
            assert not (one.one_isolation and one.without_cores and other.cores)
        assert len(here) == 1 or not any(taken.whole for taken in here)


@given(gpu_lists, st.lists(pods(), max_size=6))
def test_nothing_is_ever_over_committed(of: tuple[Gpu, ...], wanted: list[PodRequest]) -> None:
    taken: dict[str, Taken] = {}
    running = []
    for pod in wanted:
        answer = fit(pod, node(of, taken))
        if isinstance(answer, PodPlacement):
            running.append(answer)
            taken = add(taken, answer)
        check_node(of, running)


@given(gpu_lists, pods())
def test_every_container_gets_what_it_asks_on_gpus_it_accepts(of: tuple[Gpu, ...], pod: PodRequest) -> None:
    answer = fit(pod, node(of))
    assume(isinstance(answer, PodPlacement))
    assert isinstance(answer, PodPlacement)
    assert 0 <= answer.score <= 10
    by_uuid = {gpu.uuid: gpu for gpu in of}
    assert [grant.name for grant in answer.containers] == [container.container for container in pod.containers]
    for grant, container in zip(answer.containers, pod.containers, strict=True):
        assert len({share.gpu for share in grant.shares}) == len(grant.shares) == container.count
        for share in grant.shares:
            gpu = by_uuid[share.gpu]
            assert gpu.healthy
            assert share.gpu not in pod.selector.not_uuids
            assert not pod.selector.types or "V100" in gpu.model
            asked = container.memory_on(gpu.capacity_mib)
            if container.sharing.alone_below_mib and share.exclusive:
                assert share.memory_mib == max(asked, min(gpu.memory_mib, gpu.capacity_mib))
            else:
                assert share.memory_mib == (min(asked, gpu.memory_mib) if container.whole else asked)
            assert share.cores == container.cores
            assert share.memory_mib > 0


def less(taken: Taken, part: tuple[int, int, int]) -> Taken:
    slots, memory, cores = (max(0, have - gone) for have, gone in zip(taken, part, strict=False))
    return Taken(slots, memory, cores, taken.whole and slots > 0)


@settings(max_examples=300)
@given(
    gpu_lists,
    st.lists(takens, min_size=4, max_size=4),
    pods(),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 80), st.integers(0, 100)), min_size=4, max_size=4),
)
def test_more_free_never_makes_a_pod_unfit(
    of: tuple[Gpu, ...], held: list[Taken], pod: PodRequest, gone: list[tuple[int, int, int]]
) -> None:
    before = {f"GPU-{n}": taken for n, taken in enumerate(held)}
    after = {f"GPU-{n}": less(taken, part) for n, (taken, part) in enumerate(zip(held, gone, strict=True))}
    if isinstance(fit(pod, node(of, before)), PodPlacement):
        assert isinstance(fit(pod, node(of, after)), PodPlacement)


def arrangements(of: Sequence[Gpu], pod: PodRequest) -> Iterator[tuple[tuple[Gpu, ...], ...]]:
    return itertools.product(*(itertools.combinations(of, container.count) for container in pod.containers))


def allowed(of: Sequence[Gpu], pod: PodRequest, choice: Sequence[tuple[Gpu, ...]], held: dict[str, Taken]) -> bool:
    """Whether a choice of GPUs keeps every rule, worked out from the sums of `taken_by` alone."""
    grants = tuple(
        ContainerGrant(
            name=container.container,
            shares=tuple(
                Share(gpu=gpu.uuid, memory_mib=container.memory_on(gpu.capacity_mib), cores=container.cores)
                for gpu in chosen
            ),
            init=container.init,
            sidecar=container.sidecar,
        )
        for container, chosen in zip(pod.containers, choice, strict=True)
    )
    total = taken_by(grants)
    for gpu in of:
        here, others = total.get(gpu.uuid, NOTHING), held.get(gpu.uuid, NOTHING)
        if here == NOTHING:
            continue
        both = here.plus(others)
        if not gpu.healthy or others.whole or both.slots > gpu.slots:
            return False
        if both.memory_mib > gpu.capacity_mib or both.cores > gpu.cores_capacity:
            return False
    return True


@settings(max_examples=300)
@given(gpu_lists, st.lists(takens, min_size=4, max_size=4), pods(shared=True))
def test_a_pod_is_refused_only_where_no_arrangement_keeps_the_rules(
    of: tuple[Gpu, ...], held: list[Taken], pod: PodRequest
) -> None:
    """Every choice of GPUs is tried, for pods whose containers have no rules beyond the sums."""
    taken = {f"GPU-{n}": one for n, one in enumerate(held)}
    possible = any(allowed(of, pod, choice, taken) for choice in arrangements(of, pod))
    assert isinstance(fit(pod, node(of, taken)), PodPlacement) == possible


@given(gpu_lists, st.lists(takens, min_size=4, max_size=4), pods())
def test_the_explanation_agrees_with_fit_and_names_true_numbers(
    of: tuple[Gpu, ...], held: list[Taken], pod: PodRequest
) -> None:
    state = node(of, {f"GPU-{n}": taken for n, taken in enumerate(held)})
    answer, reported = fit(pod, state), explain(pod, [state])
    assert bool(reported.fitting) == isinstance(answer, PodPlacement)
    if isinstance(answer, Misfit):
        assert reported.groups[0].reason == answer.reason
        assert answer.reason in reported.summary
        check_numbers(of, held, answer)


def check_numbers(of: Sequence[Gpu], held: Sequence[Taken], misfit: Misfit) -> None:
    """What a misfit says to be there is there, and less than what it says to be needed."""
    needed, there, unit = misfit.numbers
    if misfit.cause is Cause.MEMORY:
        assert unit == "MiB"
        assert there < needed
        assert there in {max(0, gpu.capacity_mib - taken.memory_mib) for gpu, taken in zip(of, held, strict=False)}
    if misfit.cause is Cause.CORES:
        assert unit == "%"
        assert there < needed == misfit.container.cores
        assert there in {max(0, gpu.cores_capacity - taken.cores) for gpu, taken in zip(of, held, strict=False)}
    if misfit.cause is Cause.COUNT:
        assert (needed, there) == (misfit.container.count, len(of))
    if misfit.cause in (Cause.MEMORY, Cause.CORES, Cause.COUNT):
        assert {str(needed), str(there)} <= set(re.findall(r"\d+", misfit.reason))
    if misfit.lasting:
        assert isinstance(fit(misfit_pod(misfit), node(of)), Misfit)


def misfit_pod(misfit: Misfit) -> PodRequest:
    return PodRequest(dialect="hami", containers=(misfit.container,), selector=misfit.selector)


@given(gpu_lists, pods())
def test_a_pod_that_fits_on_an_empty_node_never_gets_a_lasting_refusal(of: tuple[Gpu, ...], pod: PodRequest) -> None:
    assume(isinstance(fit(pod, node(of)), PodPlacement))
    full = {gpu.uuid: Taken(gpu.slots, gpu.capacity_mib, gpu.cores_capacity) for gpu in of}
    assert not missed(fit(pod, node(of, full))).lasting
