"""GPUs become unhealthy for reasons that are theirs, and healthy again when those are over."""

import pytest
from msgspec import structs

from lamina import configuration
from lamina.agent.state.gpu_health import APPLICATION_XIDS, HealthTracker, is_critical
from lamina.errors import BadInput
from lamina.ports.nvml import XidEvent
from lamina.ports.nvml.fake import fake_gpus

GPUS = fake_gpus(3)
QUIET_S = 60.0
A, B, C = (facts.uuid for facts in GPUS)


def book() -> HealthTracker:
    made = HealthTracker()
    made.record_listing(GPUS, 0.0)
    return made


def sick(of: HealthTracker) -> dict[str, str]:
    return {state.facts.uuid: state.reason for state in of.gpus() if not state.healthy}


def test_all_are_healthy_at_first() -> None:
    assert [state.facts.index for state in book().gpus()] == [0, 1, 2]
    assert sick(book()) == {}


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 68, 109, 137])
def test_errors_of_programs_do_not_count(xid: int) -> None:
    known = book()
    assert xid in APPLICATION_XIDS
    assert not known.record_error(XidEvent(A, xid), 1.0)
    assert sick(known) == {}


def test_a_critical_error_counts_until_it_has_been_quiet() -> None:
    known = book()
    assert known.record_error(XidEvent(B, 48), 10.0)
    assert sick(known) == {B: "the driver reported XID 48"}
    known.record_listing(GPUS, 10.0 + QUIET_S - 1)
    assert list(sick(known)) == [B]
    known.record_error(XidEvent(B, 48), 10.0 + QUIET_S - 1)
    known.record_listing(GPUS, 10.0 + QUIET_S + 1)
    assert list(sick(known)) == [B]
    known.record_listing(GPUS, 10.0 + 2 * QUIET_S)
    assert sick(known) == {}


def test_an_error_that_names_no_gpu_or_an_unknown_one_strikes_all() -> None:
    for uuid in ("", "GPU-unknown"):
        known = book()
        known.record_error(XidEvent(uuid, 79), 1.0)
        assert set(sick(known)) == {A, B, C}


def test_a_lost_gpu_stays_known_and_comes_back() -> None:
    known = book()
    known.record_listing([GPUS[0], GPUS[2]], 1.0)
    assert sick(known) == {B: "the GPU does not answer NVML"}
    known.record_listing(GPUS, 2.0)
    assert sick(known) == {}


def test_a_gpu_with_another_uuid_takes_the_place_of_the_one_before() -> None:
    known = book()
    replacement = fake_gpus(4)[3]
    known.record_listing([GPUS[0], GPUS[1], replacement], 1.0)
    assert [state.facts.uuid for state in known.gpus()] == [A, B, replacement.uuid]
    assert sick(known) == {}


def test_a_silent_driver_makes_all_sick_until_it_answers() -> None:
    known = book()
    known.record_outage("NVML does not tell the GPUs: driver not loaded")
    assert set(sick(known).values()) == {"NVML does not tell the GPUs: driver not loaded"}
    known.record_listing(GPUS, 5.0)
    assert sick(known) == {}


@pytest.mark.parametrize(
    ("text", "counting", "not_counting"),
    [
        ("", (48, 63, 79), (13, 31, 43, 45, 68, 109, 137)),
        ("health: {ignoredXids: [63, 79]}", (48, 74), (13, 63, 79)),
        ("health: {ignoredXids: all}", (), (13, 48, 79)),
        ("health: {ignoredXids: all, countedXids: [79]}", (79,), (48, 13)),
        ("health: {onlyXids: [74, 79]}", (74, 79), (48, 63, 13)),
        ("health: {onlyXids: [74, 79], ignoredXids: [79], countedXids: [13]}", (74, 13), (79, 48)),
    ],
)
def test_lists_of_errors(text: str, counting: tuple[int, ...], not_counting: tuple[int, ...]) -> None:
    rules = configuration.load(text, "test").health
    assert [xid for xid in (*counting, *not_counting) if is_critical(xid, rules)] == list(counting)


@pytest.mark.parametrize(
    "text", ["health: {ignoredXids: some}", "health: {onlyXids: [-1]}", "health: {recoverySeconds: -1}"]
)
def test_lists_that_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        configuration.load(text, "test")


def test_the_last_error_is_reported_whether_or_not_it_counts() -> None:
    known = book()
    known.record_error(XidEvent(A, 31), 1.0)
    assert [state.xid for state in known.gpus()] == [31, 0, 0]
    assert sick(known) == {}


def test_memory_that_cannot_be_repaired_is_a_reason() -> None:
    known = HealthTracker()
    known.record_listing([structs.replace(GPUS[0], remapping_failed=True)], 0.0)
    assert sick(known) == {A: "rows of its memory could not be remapped"}


def test_gpus_of_before_are_known_until_nvml_answers() -> None:
    known = HealthTracker(known=GPUS)
    known.record_outage("NVML does not tell the GPUs: Driver Not Loaded")
    assert set(sick(known)) == {A, B, C}
    known.record_listing(GPUS[:2], 1.0)
    assert sick(known) == {C: "the GPU does not answer NVML"}
    known.record_listing(GPUS, 2.0)
    assert sick(known) == {}


@pytest.mark.parametrize(
    ("text", "pages", "errors", "reason"),
    [
        ("", 60, 4, ""),
        ("", None, None, ""),
        ("", 61, 0, "it has 61 retired memory pages, more than the configured 60"),
        ("", 0, 5, "it has 5 uncorrectable SRAM errors, more than the configured 4"),
        (
            "health: {maxRetiredPages: 0, maxSramErrors: 9}",
            1,
            9,
            "it has 1 retired memory page, more than the configured 0",
        ),
        ("health: {maxRetiredPages: null, maxSramErrors: null}", 999, 999, ""),
    ],
)
def test_memory_that_is_worn(text: str, pages: int | None, errors: int | None, reason: str) -> None:
    known = HealthTracker(configuration.load(text, "test").health)
    known.record_listing([structs.replace(GPUS[0], retired_pages=pages, sram_errors=errors), *GPUS[1:]], 0.0)
    assert sick(known) == ({A: reason} if reason else {})
