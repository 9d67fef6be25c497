"""Which pods an agent lists as idle."""

import pytest

from lamina.agent.chargeback.amounts import AccountedGpu, UsageSample
from lamina.agent.chargeback.book import AccountBook, BusyCounter, idle_pods
from lamina.core.evictions import MAX_IDLE, IdlePod, IdleShares

NOW, HOUR_S = 1_000_000.0, 3600.0


def policy(hours: int) -> IdleShares:
    return IdleShares(hours=hours, notice_minutes=1, action="evict", namespaces=("*",))


def counter(uid: str, idle_h: float, *, container: str = "main", gpu: str = "GPU-0") -> BusyCounter:
    return BusyCounter(uid, container, gpu, 5.0, NOW - idle_h * HOUR_S)


def test_the_longest_idle_come_first_and_the_moment_stays_the_same() -> None:
    counters = [counter("a", 2), counter("b", 5), counter("c", 1)]
    expected = (IdlePod(pod_uid="b", since=int(NOW - 5 * HOUR_S)), IdlePod(pod_uid="a", since=int(NOW - 2 * HOUR_S)))
    assert idle_pods(counters, policy(2), NOW) == expected
    assert idle_pods(counters, policy(2), NOW + 60) == expected, "an inventory is not written for each second"


@pytest.mark.parametrize(("container", "gpu"), [("side", "GPU-0"), ("main", "GPU-1")])
def test_a_pod_that_uses_any_of_its_gpus_is_not_idle(container: str, gpu: str) -> None:
    assert idle_pods([counter("a", 9), counter("a", 0, container=container, gpu=gpu)], policy(1), NOW) == ()


def test_without_hours_nothing_is_listed_and_otherwise_a_bounded_number() -> None:
    counters = [counter(f"u{number}", 9) for number in range(MAX_IDLE + 1)]
    assert idle_pods(counters, policy(0), NOW) == ()
    assert len(idle_pods(counters, policy(1), NOW)) == MAX_IDLE


@pytest.mark.parametrize("jump_s", [-5 * HOUR_S, -120.0, 120.0, 5 * HOUR_S])
def test_a_clock_that_is_set_makes_no_pod_idle(jump_s: float) -> None:
    book = AccountBook()
    gpus = {"GPU-0": AccountedGpu("A100", 1 << 30)}

    def observe(busy_s: float, passed_s: float, now: float) -> None:
        sample = UsageSample(
            namespace="a", pod_uid="p", gpu="GPU-0", memory_bytes=1 << 29, used_bytes=0, busy_s={"main": busy_s}
        )
        book.observe(gpus, [sample], passed_s=passed_s, now=now)

    observe(1.0, 5, NOW)
    observe(2.0, 5, NOW + 5)
    observe(2.0, 5, NOW + 10 + jump_s)
    assert idle_pods(book.state.busy, policy(1), NOW + 10 + jump_s) == ()
    observe(2.0, HOUR_S, NOW + 10 + jump_s + HOUR_S)
    (idle,) = idle_pods(book.state.busy, policy(1), NOW + 10 + jump_s + HOUR_S)
    assert idle.since == int(NOW + 5 + jump_s), "an hour is an hour"
