"""Pods with several GPU containers: sharing a GPU, init containers and their peak, choices that must be undone."""

from lamina.core.ledger import Taken, taken_by
from lamina.placement import Cause, fit
from tests.placement.nodes import ask, gpus, missed, node, placed, request, uuids

PACK = {"gpu_policy": "binpack"}


def test_both_containers_may_share_one_gpu() -> None:
    answer = placed(fit(request(ask(10000, name="a"), ask(20000, name="b")), node(gpus(1))))
    assert taken_by(answer.containers) == {"GPU-0": Taken(2, 30000, 0, without_cores=True)}


def test_containers_that_do_not_fit_side_by_side_are_refused_in_numbers() -> None:
    pod = request(ask(20000, 10, name="a"), ask(20000, name="b"))
    misfit = missed(fit(pod, node(gpus(1))))
    assert (misfit.cause, misfit.lasting) == (Cause.TOGETHER, False)
    assert misfit.reason == (
        "its containers fit one by one but not together (a 20000 MiB and 10 % of the time, b 20000 MiB);"
        " free: 32768 MiB and 100 %"
    )


def test_the_container_that_finds_no_place_is_named() -> None:
    misfit = missed(fit(request(ask(10, name="a"), ask(40000, name="b")), node()))
    assert misfit.reason == "container b: needs 40000 MiB; the largest GPU has 32768 MiB"


def test_each_slot_counts() -> None:
    pod = request(*(ask(1, name=str(n)) for n in range(3)))
    placed(fit(pod, node(gpus(1, slots=3))))
    assert missed(fit(pod, node(gpus(1, slots=2)))).cause is Cause.TOGETHER


def test_a_first_choice_that_blocks_the_rest_is_undone() -> None:
    taken = {"GPU-0": Taken(1, 12768, 0), "GPU-1": Taken(1, 22768, 0)}  # free are 20000 and 10000
    answer = fit(request(ask(10000, name="a"), ask(20000, name="b"), gpu_policy="spread"), node(gpus(2), taken))
    assert (uuids(answer, 0), uuids(answer, 1)) == (["GPU-1"], ["GPU-0"])


def test_an_exclusive_container_shares_with_no_other_of_its_pod() -> None:
    pod = request(ask(name="a"), ask(10, name="b"), **PACK)
    answer = fit(pod, node(gpus(2)))
    assert uuids(answer, 0) != uuids(answer, 1)
    assert missed(fit(pod, node(gpus(1)))).cause is Cause.TOGETHER
    back = request(ask(10, name="b"), ask(name="a"), **PACK)
    assert missed(fit(back, node(gpus(1)))).cause is Cause.TOGETHER


def test_an_init_container_uses_the_gpu_that_the_pod_has_anyway() -> None:
    pod = request(ask(30000, name="prepare", init=True), ask(20000, name="main"), gpu_policy="spread")
    for taken in ({}, {"GPU-0": Taken(1, 1, 0)}):
        answer = placed(fit(pod, node(gpus(2), taken)))
        assert uuids(answer, 0) == uuids(answer, 1)
        assert [c.name for c in answer.containers] == ["prepare", "main"]
        (held,) = taken_by(answer.containers).values()
        assert held == Taken(1, 30000, 0, without_cores=True)


def test_whole_gpus_one_after_the_other_are_the_same_gpu() -> None:
    answer = fit(request(ask(name="prepare", init=True), ask(name="main")), node(gpus(1)))
    assert uuids(answer, 0) == uuids(answer, 1) == ["GPU-0"]


def test_an_init_container_alone_may_need_more_than_is_free_with_a_sidecar() -> None:
    sidecar = ask(5000, name="sidecar", init=True, sidecar=True)
    heavy = ask(30000, name="heavy", init=True)
    main = ask(1000, name="main")
    assert missed(fit(request(sidecar, heavy, main), node(gpus(1)))).cause is Cause.TOGETHER
    placed(fit(request(heavy, sidecar, main), node(gpus(1))))


def test_an_init_container_takes_another_gpu_where_its_pods_own_is_too_full() -> None:
    taken = {"GPU-0": Taken(1, 10000, 0), "GPU-1": Taken(1, 20000, 0)}
    pod = request(ask(20000, name="prepare", init=True), ask(10000, name="main"), gpu_policy="binpack")
    answer = fit(pod, node(gpus(2), taken))
    assert (uuids(answer, 0), uuids(answer, 1)) == (["GPU-0"], ["GPU-1"])


def test_a_container_without_cores_is_not_put_where_its_pod_takes_all_the_time() -> None:
    pod = request(ask(10, 60, name="a"), ask(10, 40, name="b"), ask(10, 0, name="c"), **PACK)
    assert missed(fit(pod, node(gpus(1)))).cause is Cause.TOGETHER
    placed(fit(pod, node(gpus(2))))


def test_a_pod_made_to_exhaust_the_search_gets_an_answer() -> None:
    taken = {f"GPU-{n}": Taken(1, 1000 * n, 0) for n in range(16)}
    pod = request(*(ask(17000 + n, count=4, name=str(n)) for n in range(6)))
    assert missed(fit(pod, node(gpus(16), taken))).cause is Cause.TOGETHER


def test_n_gpus_each_for_two_containers_share_the_same_ones() -> None:
    pod = request(ask(16384, count=2, name="a"), ask(16384, count=2, name="b"))
    answer = placed(fit(pod, node(gpus(2))))
    assert taken_by(answer.containers) == {gpu: Taken(2, 32768, 0, without_cores=True) for gpu in ("GPU-0", "GPU-1")}
