"""A bad object is logged once, counted, and stops nothing."""

import asyncio
import logging

import pytest

from lamina.errors import BadInput
from lamina.ports.set_aside import SetAside


@pytest.fixture
def aside() -> SetAside:
    return SetAside(logging.getLogger("test"))


def test_a_failure_is_logged_once_and_counted(aside: SetAside, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        with aside.around("Pod", "default/a"):
            raise BadInput("too many GPUs")
    assert [record.getMessage() for record in caplog.records] == ["Setting aside Pod default/a: too many GPUs"]
    assert caplog.records[0].exc_info is None
    assert aside.counts == {"Pod": 1}


def test_a_defect_is_logged_with_its_traceback(aside: SetAside, caplog: pytest.LogCaptureFixture) -> None:
    with aside.around("Pod", "default/a"):
        raise OverflowError
    assert "OverflowError" in caplog.text and "Traceback" in caplog.text


def test_an_object_counts_again_for_another_reason_and_after_it_was_used(aside: SetAside) -> None:
    for reason in ("one", "two", "two", "", "two"):
        with aside.around("Pod", "default/a"):
            if reason:
                raise ValueError(reason)
    assert aside.counts == {"Pod": 3}


def test_objects_are_distinguished_by_kind_and_name(aside: SetAside) -> None:
    for kind, name in (("Pod", "a"), ("Pod", "b"), ("Node", "a")):
        with aside.around(kind, name):
            raise ValueError("bad")
    assert aside.counts == {"Pod": 2, "Node": 1}
    samples = {sample.labels["kind"]: sample.value for sample in aside.family().samples}
    assert samples == {"Pod": 2, "Node": 1}


async def test_cancellation_passes(aside: SetAside) -> None:
    with pytest.raises(asyncio.CancelledError), aside.around("Pod", "a"):
        raise asyncio.CancelledError
    assert aside.counts == {}


def test_what_is_remembered_is_bounded(aside: SetAside) -> None:
    for number in range(5000):
        aside.add("Pod", str(number), ValueError("x" * 2000))
    assert len(aside._known) <= 4096
    assert all(len(known.reason) <= 512 for known in aside._known.values())


def test_an_object_that_changes_at_will_does_not_flood_the_log(
    aside: SetAside, caplog: pytest.LogCaptureFixture
) -> None:
    reported = sum(aside.add("Pod", "liar", ValueError(f"lie {number}")) for number in range(1000))
    for _ in range(1000):
        aside.forget("Pod", "liar")
        reported += aside.add("Pod", "liar", ValueError("lie"))
    assert reported == len(caplog.records) == 10 + 20
    assert aside.counts == {"Pod": 2000}
    assert aside.add("Pod", "honest", ValueError("mistake"))
