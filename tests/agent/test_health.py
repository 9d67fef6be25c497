"""GPUs become unhealthy for reasons that are theirs, and healthy again when those are over."""

import pytest

from lamina.agent.health import APPLICATION_XIDS, QUIET_S, HealthBook
from lamina.ports.nvml import XidEvent
from lamina.ports.nvml.fake import fake_gpus

GPUS = fake_gpus(3)
A, B, C = (facts.uuid for facts in GPUS)


def book() -> HealthBook:
    made = HealthBook()
    made.answered(GPUS, 0.0)
    return made


def sick(of: HealthBook) -> dict[str, str]:
    return {state.facts.uuid: state.reason for state in of.states() if not state.healthy}


def test_all_are_healthy_at_first() -> None:
    assert [state.facts.index for state in book().states()] == [0, 1, 2]
    assert sick(book()) == {}


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 68, 109])
def test_errors_of_programs_do_not_count(xid: int) -> None:
    known = book()
    assert xid in APPLICATION_XIDS
    assert not known.struck(XidEvent(A, xid), 1.0)
    assert sick(known) == {}


def test_a_critical_error_counts_until_it_has_been_quiet() -> None:
    known = book()
    assert known.struck(XidEvent(B, 48), 10.0)
    assert sick(known) == {B: "the driver reported XID 48"}
    known.answered(GPUS, 10.0 + QUIET_S - 1)
    assert list(sick(known)) == [B]
    known.struck(XidEvent(B, 48), 10.0 + QUIET_S - 1)
    known.answered(GPUS, 10.0 + QUIET_S + 1)
    assert list(sick(known)) == [B]
    known.answered(GPUS, 10.0 + 2 * QUIET_S)
    assert sick(known) == {}


def test_an_error_that_names_no_gpu_or_an_unknown_one_strikes_all() -> None:
    for uuid in ("", "GPU-of-nobody"):
        known = book()
        known.struck(XidEvent(uuid, 79), 1.0)
        assert set(sick(known)) == {A, B, C}


def test_a_lost_gpu_stays_known_and_comes_back() -> None:
    known = book()
    known.answered([GPUS[0], GPUS[2]], 1.0)
    assert sick(known) == {B: "the GPU does not answer NVML"}
    known.answered(GPUS, 2.0)
    assert sick(known) == {}


def test_a_gpu_with_another_uuid_takes_the_place_of_the_one_before() -> None:
    known = book()
    replacement = fake_gpus(4)[3]
    known.answered([GPUS[0], GPUS[1], replacement], 1.0)
    assert [state.facts.uuid for state in known.states()] == [A, B, replacement.uuid]
    assert sick(known) == {}


def test_a_silent_driver_makes_all_sick_until_it_answers() -> None:
    known = book()
    known.silent("NVML does not tell the GPUs: driver not loaded")
    assert set(sick(known).values()) == {"NVML does not tell the GPUs: driver not loaded"}
    known.answered(GPUS, 5.0)
    assert sick(known) == {}
