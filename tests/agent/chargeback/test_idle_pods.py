"""Which pods an agent lists as idle."""

import pytest

from lamina.agent.chargeback.book import BusyCounter, idle_pods
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
