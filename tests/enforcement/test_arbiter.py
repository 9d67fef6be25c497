"""Who gets how much of a GPU's time, decided from plain figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from lamina.core.grants import ComputePolicy
from lamina.enforcement import layout
from lamina.enforcement.activity import WINDOW, Activity
from lamina.enforcement.arbiter import Arbiter, Decision, Tenant, got

NOW = 1 << 50
MS = 1_000_000


def idle() -> Activity:
    return Activity(brief=np.zeros(WINDOW), worked=np.zeros(WINDOW))


def busy(processes: float = 1, *, waits: bool = False) -> Activity:
    worked = np.full(WINDOW, processes)
    return Activity(brief=np.zeros(WINDOW), worked=worked, asked_at=NOW, waited_at=NOW if waits else 0)


def tenant(name: str, activity: Activity, share: float = 0.5, priority: int = 1, policy: str = "cap") -> Tenant:
    return Tenant(name=name, share=share, policy=ComputePolicy(policy), priority=priority, activity=activity)


def decide(*tenants: Tenant, low: float = 0, now: int = NOW) -> dict[str, Decision]:
    return Arbiter(low_priority_percent=low).tick(now, tenants)


@pytest.mark.parametrize("gpus", [1, 2])
def test_containers_that_keep_one_gpu_busy_launch_in_windows(gpus: int) -> None:
    """Unless one has several GPUs."""
    arbiter, opened = Arbiter(), False
    for tick in range(200):
        now = NOW + tick * 10 * MS
        pair = [
            structs.replace(
                tenant(name, structs.replace(busy(), asked_at=now, waited_at=now)), launch_ns=MS // 10, gpus=count
            )
            for name, count in (("a", 1), ("b", gpus))
        ]
        windows = [each.window for each in arbiter.tick(now, pair).values()]
        opened = opened or windows == [10_000 << 32, 10_000 | 20_000 << 32]
        assert opened or windows == [0, 0]
    assert opened is (gpus == 1)


def test_who_is_alone_gets_no_refund() -> None:
    assert decide(tenant("a", busy()), tenant("b", idle()))["a"].refund_ns == 0


def test_two_that_work_all_the_time_are_refunded_half() -> None:
    decisions = decide(tenant("a", busy()), tenant("b", busy()))
    assert decisions["a"].refund_ns == pytest.approx(WINDOW * MS / 2)
    assert decisions["b"].refund_ns == pytest.approx(WINDOW * MS / 2)


def test_processes_take_turns_not_containers() -> None:
    decisions = decide(tenant("two", busy(2)), tenant("one", busy(1)))
    assert decisions["two"].refund_ns == pytest.approx(WINDOW * MS / 3, rel=0.01)
    assert decisions["one"].refund_ns == pytest.approx(WINDOW * MS * 2 / 3, rel=0.01)


def test_brief_work_had_the_gpu_and_long_work_waited_for_it() -> None:
    short = Activity(brief=np.full(WINDOW, 0.4), worked=np.zeros(WINDOW), asked_at=NOW)
    decisions = decide(tenant("short", short), tenant("long", busy()))
    assert decisions["short"].refund_ns == 0
    assert decisions["long"].refund_ns == pytest.approx(WINDOW * MS * 0.4)


def test_a_refund_only_grows_with_time_and_goes_on_after_a_restart() -> None:
    pair = (tenant("a", busy()), tenant("b", busy()))
    arbiter = Arbiter()
    first = arbiter.tick(NOW, pair)["a"].refund_ns
    assert arbiter.tick(NOW + 10 * MS, pair)["a"].refund_ns == pytest.approx(first + 5 * MS)
    assert Arbiter().tick(NOW, pair, {"a": 7_000})["a"].refund_ns == pytest.approx(first + 7_000)


FRACTIONS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 3)), min_size=1, max_size=6)


@given(FRACTIONS)
def test_no_tenant_gets_more_than_it_worked_nor_all_more_than_the_gpu(parts: list[tuple[float, float]]) -> None:
    brief, worked = (np.array([[part[i]] for part in parts]) for i in range(2))
    real = got(brief, worked)
    assert (real >= -1e-9).all() and (real <= brief + worked + 1e-6).all()
    assert real.sum() <= 1 + 1e-6


def test_an_idle_gpu_is_lent_to_who_waits_and_a_cap_never_borrows() -> None:
    alone = decide(tenant("a", busy(waits=True), 0.3, policy="weight"), tenant("b", idle(), 0.7, policy="weight"))
    assert alone["a"].rate == 1
    assert decide(tenant("a", busy(waits=True), 0.3), tenant("b", idle(), 0.7))["a"].rate == 0.3


def test_what_was_lent_is_taken_back_at_the_first_sign_of_its_owner() -> None:
    unfinished = np.repeat([0.0, 1.0], [WINDOW - 20, 20])
    begins = Activity(brief=np.zeros(WINDOW), worked=np.zeros(WINDOW), unfinished=unfinished, asked_at=NOW)
    both = decide(tenant("a", busy(waits=True), 0.3, policy="weight"), tenant("b", begins, 0.7, policy="weight"))
    assert both["a"].rate < 0.5 and both["b"].rate >= 0.7


def test_what_was_lent_is_taken_back_when_its_owner_works_more() -> None:
    """It did little for 100 ms, and got all of its share in the last 20."""
    more = Activity(brief=np.zeros(WINDOW), worked=np.repeat([0.1, 1.0], [WINDOW - 20, 20]), asked_at=NOW)
    both = decide(tenant("a", busy(waits=True), 0.3, policy="weight"), tenant("b", more, 0.4))
    assert both["a"].rate == pytest.approx(0.6)


def test_what_all_shares_leave_is_lent_by_shares() -> None:
    both = [tenant(name, busy(waits=True), share, policy="weight") for name, share in (("a", 0.2), ("b", 0.6))]
    assert [d.rate for d in decide(*both).values()] == pytest.approx([0.25, 0.75])


def test_idle_time_is_lent_up_to_the_limit_and_the_rest_goes_to_others() -> None:
    limited = structs.replace(tenant("limited", busy(waits=True), 0.2, policy="weight"), most=0.3)
    free = tenant("free", busy(waits=True), 0.4, policy="weight")
    decisions = decide(limited, free, tenant("idle", idle(), 0.4, policy="weight"))
    assert (decisions["limited"].rate, decisions["free"].rate) == (pytest.approx(0.3), pytest.approx(0.7))
    assert decide(limited, tenant("idle", idle(), 0.8))["limited"].rate == pytest.approx(0.3)


CONTAINERS = st.lists(st.tuples(st.integers(1, 25), st.integers(0, 75), st.booleans()), min_size=1, max_size=4)


@given(CONTAINERS)
def test_each_rate_is_between_share_and_limit_and_nothing_is_left_that_one_may_use(
    parts: list[tuple[int, int, bool]],
) -> None:
    tenants = [
        structs.replace(
            tenant(str(i), busy(waits=True) if waits else idle(), share / 100, policy="weight"),
            most=(share + more) / 100,
        )
        for i, (share, more, waits) in enumerate(parts)
    ]
    decided = decide(*tenants)
    for each in tenants:
        assert each.share - 1e-9 <= decided[each.name].rate <= each.most + 1e-9
    waiting = [each for each in tenants if each.activity.waited_at]
    used = sum(decided[each.name].rate for each in waiting)
    assert used <= 1 + 1e-9
    assert used >= min(1, sum(each.most for each in waiting)) - 1e-9


@pytest.mark.parametrize("activity", [busy(), idle()], ids=["busy", "idle"])
def test_lower_priorities_heed_the_signals_of_higher_ones(activity: Activity) -> None:
    """Whether they have work now or not: what counts is the signal at the moment of a launch."""
    low = tenant("low", busy(), priority=1)
    decided = decide(tenant("high", activity, priority=0), tenant("middle", activity, priority=1), low)
    assert decided["low"].heeds == decided["middle"].heeds == ("high",)
    assert decided["high"].heeds == ()
    assert not any(each.closed for each in decided.values())


def test_beyond_eight_signals_a_gate_closes_while_others_signal_work() -> None:
    def high(number: int, signals: bool) -> Tenant:
        works = busy() if number else idle()
        return structs.replace(tenant(str(number), works, priority=0), signals=signals)

    low = tenant("low", busy(), priority=1)
    quiet = decide(*(high(number, False) for number in range(12)), low)["low"]
    assert len(quiet.heeds) == layout.HEEDED and "0" not in quiet.heeds, "those at work come first"
    assert not quiet.closed
    assert decide(*(high(number, True) for number in range(12)), low)["low"].closed


@pytest.mark.parametrize(("share", "turns"), [(0.0, True), (0.04, True), (0.06, False)], ids=["none", "less", "enough"])
def test_a_low_priority_that_gets_less_than_is_left_to_it_gets_turns(share: float, turns: bool) -> None:
    arbiter, found = Arbiter(low_priority_percent=5), set()
    for tick in range(5):
        now = NOW + tick * 10 * MS
        worked = structs.replace(busy(), brief=np.full(WINDOW, share), worked=np.zeros(WINDOW), asked_at=now)
        high = tenant("high", structs.replace(busy(), asked_at=now), priority=0)
        found.add(arbiter.tick(now, [high, tenant("low", worked, priority=1)])["low"].turns)
    assert (len(found) > 1) is turns
    assert {word & 0xFFFFFFFF for word in found} <= {0, 750}


def test_only_one_that_waits_for_a_higher_priority_gets_turns() -> None:
    low = tenant("low", busy(), priority=1)
    assert not decide(low, low=5)["low"].turns
    assert not decide(tenant("high", busy(), priority=0), tenant("low", idle(), priority=1), low=5)["low"].turns


def test_work_without_a_limit_is_watched_only_where_it_matters() -> None:
    free = tenant("free", busy(), 0, policy="none")
    assert not decide(free)["free"].watched
    assert not decide(free, tenant("other", busy(), 0, policy="none"))["free"].watched
    assert decide(free, tenant("capped", idle()))["free"].watched
    assert not decide(free, tenant("capped", busy()))["capped"].watched
    assert decide(tenant("high", busy(), 0, 0, "none"), tenant("low", busy(), 0, 1, "none"))["high"].watched
