"""Containers on one GPU and an arbiter: from the configuration and the grant to the gate. Coarse bounds that
hold on any machine; bench.compute has the exact figures."""

from pathlib import Path

import pytest

from lamina.configuration import load
from lamina.core.grants import ComputePolicy
from tests.facade.arbitrated import ArbitratedMachine, busy_ms, decided, gains
from tests.waiting import wait_until


@pytest.fixture
def machine(tmp_path: Path, programs: dict[str, Path]) -> ArbitratedMachine:
    return ArbitratedMachine(tmp_path, programs["launching"])


def test_a_lower_priority_stops_while_a_higher_one_has_work_and_goes_on_after(machine: ArbitratedMachine) -> None:
    low, high = machine.container("low"), machine.container("high", priority=0)
    with decided(low, high), machine.working(low):
        assert gains(low, 0.3) > 50
        with machine.working(high):
            wait_until(lambda: busy_ms(high) > 100)
            assert gains(low, 0.5) < 30
        wait_until(lambda: gains(low, 0.2) > 50)


def test_a_lower_priority_gets_the_part_that_protects_it_from_starving(machine: ArbitratedMachine) -> None:
    low, high = machine.container("low"), machine.container("high", priority=0)
    with decided(low, high, low_priority_percent=40), machine.working(low), machine.working(high):
        wait_until(lambda: busy_ms(high) > 100)
        assert 50 < gains(low, 2) < 1400


def test_no_process_waits_forever_for_an_arbiter_that_stopped(machine: ArbitratedMachine) -> None:
    low, high = machine.container("low", cores=50, policy="cap"), machine.container("high", priority=0)
    with machine.working(low), machine.working(high):
        with decided(low, high):
            wait_until(lambda: busy_ms(high) > 100)
        wait_until(lambda: gains(low, 0.2) > 50)


@pytest.mark.parametrize(
    ("hami", "least", "most"),
    [
        ("{}", 500, 1100),
        ("{gpuCorePolicy: force}", 100, 400),
        ("{gpuCorePolicy: disable}", 0, 1),
        ("{disableCoreLimit: true}", 0, 1),
    ],
)
def test_the_policy_of_the_configuration_reaches_the_gate(
    machine: ArbitratedMachine, hami: str, least: int, most: int
) -> None:
    """20 percent of the GPU, of which no one else wants anything. What has no limit is not measured."""
    policy = ComputePolicy(load(f"hami: {hami}", "config").sharing.compute_policy)
    one = machine.container("one", cores=20, policy=policy.value)
    with decided(one), machine.working(one):
        gains(one, 0.3)  # what was saved up before the first launch
        assert least <= gains(one, 1) <= most


def test_idle_time_is_lent_up_to_the_limit_of_the_container(machine: ArbitratedMachine) -> None:
    one = machine.container("one", cores=10, policy="weight", most=40)
    with decided(one), machine.working(one):
        wait_until(lambda: gains(one, 0.5) > 100)
        assert 150 < gains(one, 1) < 600
