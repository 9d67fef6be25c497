"""What workloads held and used of GPUs, as sums that only grow."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.agent.chargeback.amounts import FIGURES, AccountedGpu, Amounts, UsageSample, total
from lamina.agent.chargeback.book import EMPTY, KEPT_S, MAX_PASSED_S, AccountBook, AccountKey, BookState
from lamina.core.workloads import UNKNOWN, Workload

GIB = 1 << 30
T4 = AccountedGpu("T4", 16 * GIB)
GPUS = {"GPU-0": T4, "GPU-1": T4}


def holds(pod: str = "p", gib: float = 4, **changes: Any) -> UsageSample:
    fields: dict[str, Any] = {"namespace": "a", "workload": Workload("Deployment", pod), "gpu": "GPU-0"}
    return UsageSample(**fields | {"pod_uid": f"uid-{pod}", "memory_bytes": int(gib * GIB)} | changes)


def observed(*ticks: tuple[float, list[UsageSample]], book: AccountBook | None = None) -> AccountBook:
    """A book after these ticks: the seconds that passed, and what was held."""
    book, now = book or AccountBook(), 1000.0
    for passed, usage_samples in ticks:
        now += passed
        book.observe(GPUS, usage_samples, passed_s=passed, now=now)
    return book


def amounts(book: AccountBook, workload: str = "p", namespace: str = "a", label: str = "") -> Amounts:
    found = {account.key: account.amounts for account in book.state.accounts}
    kind = "Deployment" if workload and not label else ""
    return found[AccountKey(namespace, kind, workload, "T4", label)]


def test_memory_and_compute_are_parts_of_a_gpu_by_time() -> None:
    book = observed((10, [holds(gib=4, cores=50, used_bytes=GIB, busy_s={"main": 2.0})]))
    assert amounts(book) == Amounts(
        memory_requested=2.5,
        memory_observed=2.5,
        memory_used=0.625,
        compute_requested=5,
        compute_observed=5,
        compute_used=2,
        compute_lent=3,
        gib_requested=40,
        gib_used=10,
    )
    time = book.state.gpus["T4"]
    assert (time.capacity, time.idle_memory, time.idle_compute) == (20, 17.5, 15)


def test_what_is_used_beyond_the_request_is_borrowed() -> None:
    book = observed((10, [holds(cores=20, busy_s={"main": 0.0})]), (10, [holds(cores=20, busy_s={"main": 8.0})]))
    assert (amounts(book).compute_borrowed, amounts(book).compute_lent) == pytest.approx((6, 2))


def test_a_pod_that_requests_no_compute_counts_with_its_part_of_the_memory() -> None:
    assert amounts(observed((10, [holds(gib=4)]))).compute_requested == 2.5


def test_parts_of_a_gpu_with_more_grants_than_it_has_shrink() -> None:
    book = observed((10, [holds("p", 16, cores=100), holds("q", 16, cores=100)]))
    assert amounts(book, "p").memory_requested == amounts(book, "q").compute_requested == 5
    assert book.state.gpus["T4"].idle_memory == 10, "the other GPU"


def test_use_that_is_not_known_is_neither_borrowed_nor_lent() -> None:
    found = amounts(observed((10, [holds(cores=50)])))
    assert (found.compute_requested, found.compute_used, found.compute_lent) == (5, 0, 0)


def test_a_use_that_was_never_known_is_no_figure_and_one_that_was_is_of_that_part() -> None:
    never = amounts(observed((10, [holds(cores=50)])))
    for of in ("memory", "compute", "gib"):
        assert never.figure(of, "used") is None is never.figure(of, "borrowed")
        assert never.figure(of, "requested")
    assert never.figure("compute", "lent") is None and never.figure("compute", "observed") == 0
    of_mig = amounts(observed((10, [holds(cores=50, used_bytes=0)])))
    assert (of_mig.figure("memory", "used"), of_mig.figure("compute", "used")) == (0, None)
    later = amounts(observed((10, [holds(cores=50)]), (5, [holds(cores=50, used_bytes=0, busy_s={"main": 1.0})])))
    assert (later.figure("compute", "requested"), later.figure("compute", "observed")) == (7.5, 2.5)
    assert (later.figure("compute", "used"), later.figure("compute", "lent")) == (1, 1.5)


def test_a_gpu_of_unknown_memory_has_no_use_of_it() -> None:
    book = AccountBook()
    book.observe({"GPU-0": AccountedGpu("T4", 0)}, [holds(used_bytes=GIB)], passed_s=10, now=1000)
    assert amounts(book).figure("memory", "used") is None


def test_a_whole_gpu_is_used_as_the_driver_says() -> None:
    assert amounts(observed((10, [holds(gib=16, cores=100, busy_percent=30.0)]))).compute_used == 3


def test_a_counter_that_starts_again_counts_from_zero() -> None:
    ticks = [(10, [holds(cores=100, busy_s={"main": busy})]) for busy in (4.0, 1.0, 3.0)]
    assert amounts(observed(*ticks)).compute_used == 4 + 1 + 2


def test_marks_say_when_a_gpu_was_used_and_count_as_no_time() -> None:
    ticks = [(10, [holds(marks={"main": mark, "side": 0.0})]) for mark in (0.0, 0.0, 500.0, 500.0)]
    book = observed(*ticks)
    changed = {each.container: each.changed_at for each in book.state.busy}
    assert changed["side"] < changed["main"] < book.state.at
    assert amounts(book).compute_used == 0 == amounts(book).compute_lent


def test_when_a_gpu_was_used_last_is_known() -> None:
    idle = [holds(busy_s={"main": 4.0}), holds("whole", gpu="GPU-1", busy_percent=0.0)]
    busy = [holds(busy_s={"main": 5.0}), holds("whole", gpu="GPU-1", busy_percent=1.0)]
    book = observed((10, idle), (10, idle))
    assert {counter.changed_at for counter in book.state.busy} == {1010}
    book = AccountBook(book.state)
    book.observe(GPUS, idle, passed_s=10, now=1030)
    assert {counter.changed_at for counter in book.state.busy} == {1010}
    book.observe(GPUS, busy, passed_s=10, now=1040)
    assert {counter.changed_at for counter in book.state.busy} == {1040}


@pytest.mark.parametrize(("passed", "counted"), [(-5, 0), (0, 0), (7, 7), (1e9, MAX_PASSED_S)])
def test_time_is_never_negative_and_has_a_bound(passed: float, counted: float) -> None:
    book = observed((passed, [holds(gib=16, busy_s={"main": 1e12}, used_bytes=1 << 70)]))
    assert amounts(book).memory_requested == amounts(book).memory_used == counted
    assert amounts(book).compute_used == counted, "a tenant can write any number"


def test_nothing_counts_twice_after_a_restart() -> None:
    before = observed((10, [holds(cores=50, busy_s={"main": 5.0})]))
    after = observed((0, [holds(cores=50, busy_s={"main": 5.0})]), book=AccountBook(before.state))
    assert amounts(after) == amounts(before) and after.state.gpus == before.state.gpus


def test_a_workload_is_known_until_kubernetes_lists_the_pods() -> None:
    before = observed((10, [holds()]))
    after = observed((10, [holds(workload=UNKNOWN), holds("new", workload=UNKNOWN)]), book=AccountBook(before.state))
    assert amounts(after, "p").memory_requested == 5
    assert amounts(after, "").memory_requested == 2.5


def test_labels_have_accounts_of_their_own() -> None:
    book = observed((10, [holds("p", labels={"team": "red"}), holds("q", labels={"team": "red"})]))
    assert amounts(book, "red", label="team").memory_requested == 5
    assert amounts(book, "p").memory_requested == 2.5


def test_a_workload_that_is_gone_is_folded_after_a_day() -> None:
    book = observed((10, [holds("p")]), (10, [holds("q")]))
    book.observe(GPUS, [holds("q")], passed_s=10, now=1000 + KEPT_S)
    assert {account.key.workload for account in book.state.accounts} == {"p", "q"}
    book.observe(GPUS, [holds("q")], passed_s=10, now=1011 + KEPT_S)
    assert {account.key.workload for account in book.state.accounts} == {"q"}
    [past] = book.state.past
    assert past.key == AccountKey("a", "", "", "T4") and past.amounts.memory_requested == 2.5


def test_workloads_beyond_the_bound_count_for_their_namespace() -> None:
    book = observed((10, [holds(f"p{number}", 1) for number in range(5)]), book=AccountBook(most=3, namespaces=1))
    assert len(book.state.accounts) == 4 and amounts(book, "").gib_requested == 20
    others = [holds("x", 1, namespace="b"), holds("y", 1, namespace="c")]
    observed((10, [*(holds(f"p{number}", 1) for number in range(3)), *others]), book=book)
    assert len(book.state.accounts) <= 5


def test_pods_that_come_and_go_take_bounded_space() -> None:
    book = AccountBook(most=5, namespaces=3)
    ticks = [(10.0, [holds(f"p{number}", 16, namespace=f"n{number % 7}")]) for number in range(40)]
    observed(*ticks, book=book)
    assert len(book.state.accounts) <= 5 + 3 + 1 and len(book.state.past) <= 3 + 1
    assert sums(book.state).gib_requested == pytest.approx(40 * 160)


def sums(state: BookState) -> Amounts:
    return total(account.amounts for account in (*state.accounts, *state.past))


HOLDING = st.builds(
    holds,
    pod=st.sampled_from(["p", "q", "r", "s"]),
    gib=st.floats(0, 40),
    gpu=st.sampled_from(["GPU-0", "GPU-1", "GPU-gone"]),
    namespace=st.sampled_from(["a", "b", "c"]),
    cores=st.sampled_from([0, 1, 30, 70, 100]),
    used_bytes=st.one_of(st.none(), st.integers(0, 1 << 64)),
    busy_s=st.dictionaries(st.sampled_from(["main", "other"]), st.floats(0, 1e6), max_size=2),
)
TICKS = st.lists(st.tuples(st.floats(-100, 1000), st.lists(HOLDING, max_size=6)), max_size=8)


@given(TICKS, st.integers(0, 4), st.booleans())
def test_tenants_and_idle_are_the_capacity(
    ticks: list[tuple[float, list[UsageSample]]], most: int, restarts: bool
) -> None:
    book, before = AccountBook(most=most, namespaces=2), Amounts()
    for tick in ticks:
        observed(tick, book=book)
        now = sums(book.state)
        assert all(getattr(now, figure) >= getattr(before, figure) * (1 - 1e-9) for figure in FIGURES)
        before = now
        if restarts:
            book = AccountBook(book.state, most=most, namespaces=2)
    time, used = book.state.gpus.get("T4"), sums(book.state)
    if time is None:
        assert not ticks and book.state == EMPTY
        return
    near = {"rel": 1e-6, "abs": 1e-6}
    assert time.capacity == pytest.approx(2 * sum(min(max(passed, 0), MAX_PASSED_S) for passed, _ in ticks), **near)
    assert used.memory_requested + time.idle_memory == pytest.approx(time.capacity, **near)
    assert used.compute_requested + time.idle_compute == pytest.approx(time.capacity, **near)
    assert used.memory_used <= time.capacity + 1e-6 and used.compute_used <= time.capacity + 1e-6
    balance = used.compute_requested + used.compute_borrowed - used.compute_lent
    assert balance == pytest.approx(used.compute_used, **near)


def test_many_owners_in_one_namespace_push_no_account_of_another_out() -> None:
    """Pods choose their owners. What is counted stays the same in sum."""
    forged = [holds(f"forged-{number}", 0.01) for number in range(12)]
    shop = [holds(f"shop-{number}", 1, namespace="b", gpu="GPU-1") for number in range(3)]
    book = observed((10, forged), (10, [*forged, *shop]), (10, [*forged, *shop]), book=AccountBook(most=8))
    named = [account.key for account in book.state.accounts if account.key.workload]
    assert sum(key.namespace == "b" for key in named) == 2 and len(named) >= 6, "a quarter of all"
    assert amounts(book, "shop-0", "b").memory_requested == pytest.approx(20 / 16)
    everything = total(account.amounts for account in (*book.state.accounts, *book.state.past))
    assert everything.memory_requested == pytest.approx((30 * 12 * 0.01 + 20 * 3) / 16, rel=1e-3)
