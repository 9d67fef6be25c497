"""A driver that only samples, as that of an H200 does, costs no container its share, and liars gain little by it."""

from collections.abc import Iterator, Sequence
from random import Random
from unittest import mock

import numpy as np
import pytest

from lamina.enforcement import arbiter as arbiter_module
from lamina.enforcement.activity import NOTHING, WINDOW, Activity
from lamina.enforcement.arbiter import Arbiter
from lamina.enforcement.driver_figures import Confirmation
from lamina.enforcement.work_credit import MEASURED, SAMPLED, ReportedWork, Trust, WorkCredit
from tests.enforcement.neighbors import ASKED_MS, BEGIN, MS, TICK_MS, Neighbor, tenant, with_activity

SAMPLE_MS, SAMPLES = 200, 6
BIASED = {"a": (0.5, 0.05), "b": (0.5, -0.05)}
"""Containers with their parts of the time, and how far the driver is off on average."""


def figures(parts: Sequence[float], random: Random) -> Iterator[list[float]]:
    """What the driver says every 100 ms: averages of the latest samples, each of which is all of one process."""
    samples: list[int] = [random.choices(range(len(parts)), parts)[0]]
    while True:
        for _ in range(SAMPLE_MS // 100):
            yield [samples[-SAMPLES:].count(i) / len(samples[-SAMPLES:]) for i in range(len(parts))]
        samples.append(random.choices(range(len(parts)), parts)[0])


def believed(parts: Sequence[float], reported: Sequence[float], seconds: int, trust: Trust, seed: int) -> list[float]:
    """The part of what each container reports that is believed, over the whole time."""
    credit, said = WorkCredit(), figures(parts, Random(seed))
    total = np.zeros(len(parts))
    for step in range(10 * seconds):
        now = BEGIN + 100 * step * MS
        each = [
            ReportedWork(str(i), Activity(worked=np.full(WINDOW, report)), Confirmation(1, work, now), 1 / len(parts))
            for i, (report, work) in enumerate(zip(reported, next(said), strict=True))
        ]
        found = [activity.worked for activity in credit.believe(each, now, trust)]
        credit.charge({report.name: worked for report, worked in zip(each, found, strict=True)})
        total += [worked[-100:].mean() for worked in found]
    parted: list[float] = (total / (10 * seconds) / reported).tolist()
    return parted


@pytest.mark.parametrize("parts", [(0.1, 0.9), (0.3, 0.7), (0.5, 0.5), (0.25, 0.25, 0.25, 0.25)], ids=str)
def test_who_claims_what_it_does_is_believed_for_minutes(parts: tuple[float, ...]) -> None:
    for seed in range(3):
        assert believed(parts, parts, 300, SAMPLED, seed) == pytest.approx([1.0] * len(parts), abs=0.001)


def test_with_the_trust_in_a_driver_that_measures_it_would_not_be() -> None:
    """The null control."""
    assert any(min(believed((0.5, 0.5), (0.5, 0.5), 300, MEASURED, seed)) < 0.99 for seed in range(3))


def test_a_lie_is_believed_up_to_the_tolerance_after_its_credit_is_used_up() -> None:
    lied = believed((0.0, 1.0), (1.0, 1.0), 300, SAMPLED, 1)[0]
    assert lied <= SAMPLED.tolerance + SAMPLED.credit_ms / 300_000 + 0.01


def farthest(trust: Trust, *, settled_s: int = 10, seconds: int = 30) -> float:
    """How far the share of a container was from its limit in any second, under a biased driver that samples and is
    trusted so far when that is known."""
    random, arbiter = Random(1), Arbiter()
    members = [Neighbor(tenant(name, part)) for name, (part, _) in BIASED.items()]
    bias = [off for _, off in BIASED.values()]
    before, worst = [0.0] * len(members), 0.0
    samples, got, said, asked_at = [[0.0] * len(members)], [0.0] * len(members), [0.0] * len(members), 0
    with mock.patch.object(arbiter_module, "SAMPLED", trust):
        for ms in range(seconds * 1000):
            now = BEGIN + ms * MS
            if ms % SAMPLE_MS == 0 and any(got):
                chosen = random.choices(range(len(got)), [g / SAMPLE_MS + b for g, b in zip(got, bias, strict=True)])[0]
                samples.append([sum(got) / SAMPLE_MS if i == chosen else 0.0 for i in range(len(got))])
                got = [0.0] * len(got)
            if ms % ASKED_MS == 0:
                asked_at, said = now, [sum(each) / SAMPLES for each in zip(*samples[-SAMPLES:], strict=True)]
            if ms % TICK_MS == 0:
                tenants = [
                    with_activity(each, now, Confirmation(1, work, asked_at))
                    for each, work in zip(members, said, strict=True)
                ]
                decisions = arbiter.tick(now, tenants)
                for each in members:
                    each.decide(decisions[each.tenant.name])
            ready = [each.is_ready(now) for each in members]
            for i, each in enumerate(members):
                if ready[i]:
                    got[i] += each.work(now, sum(ready) - 1)
            if ms % 1000 == 999:
                off = [abs(each.got_ms - then - 500) / 10 for each, then in zip(members, before, strict=True)]
                before = [each.got_ms for each in members]
                worst = max(worst, *off) if ms > 1000 * settled_s else 0.0
    return worst


def test_shares_are_kept_under_samples() -> None:
    assert farthest(SAMPLED) <= 0.5


def test_shares_would_not_be_kept_if_samples_were_trusted_as_measurements() -> None:
    """The null control."""
    assert farthest(MEASURED) > 2


def test_an_estimate_that_shrinks_later_costs_no_credit() -> None:
    """While work is not finished, a container is estimated to have got more than it turns out to have got."""
    credit, now = WorkCredit(), BEGIN
    worked = np.ones(WINDOW)
    got = np.where(np.arange(WINDOW) < WINDOW - 20, 0.5, 1.0)
    for _ in range(3000):
        now += TICK_MS * MS
        report = ReportedWork("a", Activity(worked=worked), Confirmation(1, 0.5, now), 0.5)
        other = ReportedWork("b", Activity(), Confirmation(1, 0.5, now), 0.5)
        found = credit.believe([report, other], now, MEASURED)[0]
        credit.charge({"a": got})
    assert found.worked == pytest.approx(worked)


def test_nothing_is_believed_of_work_that_nobody_claims_or_reports() -> None:
    credit = WorkCredit()
    each = ReportedWork("a", Activity(), Confirmation(1, 0.0, BEGIN), 0.5)
    assert credit.believe([each], BEGIN, SAMPLED)[0].worked is NOTHING
