"""The workload of bench.shares is what it says, and its floor tells the default policy from the others."""

import pytest

from bench.measures import Report
from bench.shares.workload import HARDWARE, MIXES, gpus, nodes, pods


def test_the_cluster_is_scaled_in_what_may_be_granted_only() -> None:
    plain, scaled = nodes(1.0), nodes(1.5)
    assert len(plain) == sum(count for _, _, count, _, _ in HARDWARE)
    for one, other in zip(plain, scaled, strict=True):
        assert [gpu.memory_mib for gpu in one.gpus] == [gpu.memory_mib for gpu in other.gpus]
        assert all(b.capacity_mib == int(1.5 * a.capacity_mib) for a, b in zip(one.gpus, other.gpus, strict=True))


@pytest.mark.parametrize("mix", MIXES)
def test_pods_come_as_the_mix_says_and_keep_so_many_gpus_busy(mix: str) -> None:
    made = pods(1, 3000, MIXES[mix], 400)
    assert made == pods(1, 3000, MIXES[mix], 400) != pods(2, 3000, MIXES[mix], 400)
    amounts = [
        p
        for p in made
        if p.request is not None and p.request.containers[0].count == 1 and p.request.containers[0].memory_mib
    ]
    assert abs(len(amounts) / 3000 - MIXES[mix].amounts) < 0.03
    busy = sum((p.deleted - p.created) * gpus(p.request) for p in made if p.request is not None)
    assert 350 < busy / (made[-1].created - made[0].created) < 450


def test_the_floor_holds_for_the_default_policy_and_breaks_for_binpack() -> None:
    report = Report("shares")
    assert report.add("waiting", "pods", native=197.0, ours=67.0).ok
    assert report.control("waiting", "pods", native=197.0, ours=185.0).ok
    assert not report.add("waiting", "pods", native=197.0, ours=185.0).ok
