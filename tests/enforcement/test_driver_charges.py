"""In the long run, accounts say what the driver measured."""

from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from lamina.enforcement.driver_charges import AccountState, DriverCharges
from lamina.enforcement.driver_figures import Confirmation

MS, TICK_MS, ASKED_MS, AVERAGED_MS = 1_000_000, 10, 500, 1000
BEGIN_MS = 5_000
Work = Callable[[int], Mapping[str, tuple[float, float]]]
"""By ms: what each container worked in ms, and what it is charged then."""


def state(
    name: str, net_ms: float, said: Confirmation | None, there_ms: float, *, alone_ms: float = 0.0, share: float = 0.5
) -> AccountState:
    return AccountState(name, share, net_ms * MS, alone_ms * MS, there_ms * MS, 1.0, said)


def reconciled(
    work: Work, seconds: int, *, share: float = 0.5, measured: bool = True, owners: Mapping[str, str] | None = None
) -> tuple[dict[str, float], dict[str, float]]:
    """What each container worked, and what it was charged with the differences, in ms."""
    reconciliation = DriverCharges()
    worked: dict[str, list[float]] = {name: [0.0] for name in work(0)}
    net = dict.fromkeys(worked, 0.0)
    said: dict[str, Confirmation] = {}
    for ms in range(seconds * 1000):
        now = (BEGIN_MS + ms) * MS
        if ms % ASKED_MS == 0:
            said = _figures(worked, owners or {}, now)
        if ms % TICK_MS == 0:
            states = [state(name, net[name], said[name], ms, share=share) for name in worked]
            reconciliation.observe(now, states, measured=measured)
        for name, (more, charged) in work(ms).items():
            worked[name].append(worked[name][-1] + more)
            net[name] += charged
    charged = {name: net[name] + reconciliation.charged(name) / MS for name in net}
    return {name: sums[-1] for name, sums in worked.items()}, charged


def _figures(worked: Mapping[str, Sequence[float]], owners: Mapping[str, str], now: int) -> dict[str, Confirmation]:
    """What the driver says: the average of the last second, of all containers of an owner together."""
    parts: dict[str, float] = {}
    for name, sums in worked.items():
        owner = owners.get(name, name)
        parts[owner] = parts.get(owner, 0.0) + (sums[-1] - sums[max(0, len(sums) - 1 - AVERAGED_MS)]) / AVERAGED_MS
    return {name: Confirmation(1, parts[owners.get(name, name)], now, owners.get(name, "")) for name in worked}


PARTS = st.floats(0.0, 1.0)


@given(PARTS, PARTS)
def test_what_was_estimated_wrongly_is_charged(worked: float, estimated: float) -> None:
    """All but what the last second's figures do not cover yet, whatever was estimated."""
    real, charged = reconciled(lambda ms: {"a": (worked, estimated)}, 20, share=1.0)
    assert charged["a"] == pytest.approx(real["a"], abs=1100)


def test_work_that_is_charged_late_is_charged_once() -> None:
    """A kernel of 100 ms is charged when it is done."""

    def work(ms: int) -> Mapping[str, tuple[float, float]]:
        return {"a": (float(ms % 300 < 100), 100.0 if ms % 300 == 199 else 0.0)}

    real, charged = reconciled(work, 60)
    assert charged["a"] == pytest.approx(real["a"], abs=150)


def test_a_right_account_stays_as_it_is() -> None:
    real, charged = reconciled(lambda ms: {"a": (0.3, 0.3), "b": (0.7, 0.7)}, 30)
    assert charged == pytest.approx(real, abs=1)


def test_one_figure_stops_no_container_for_longer_than_a_second() -> None:
    """It worked for a second while its account shows nothing; with a share of 2 % that is the time of 50 seconds."""
    real, charged = reconciled(lambda ms: {"a": (float(ms < 1000), 0.0)}, 3, share=0.02)
    assert real["a"] == 1000 and 20 <= charged["a"] <= 2 * 3 * 20


@pytest.mark.parametrize(
    ("said", "charged", "counts"),
    [
        (0.1, 0.35, 0.3),
        (0.3, 0.35, 0.3),
        (0.35, 0.35, 0.35),
        (0.4, 0.35, 0.4),
        (0.9, 0.35, 0.4),
        (0.9, 0.2, 0.4),
        (0.5, 0.5, 0.5),  # work that is not believed: it stays charged
        (0.45, 0.5, 0.45),
        (0.9, 0.5, 0.5),
    ],
)
def test_what_the_driver_says_counts_as_far_as_it_is_possible(said: float, charged: float, counts: float) -> None:
    """Of each second, the container was alone for 0.3, and had work for 0.4."""
    reconciliation = DriverCharges()
    for ms in range(0, 20_000, TICK_MS):
        now = (BEGIN_MS + ms) * MS
        confirmed = Confirmation(1, said, now - ms % ASKED_MS * MS)
        states = [state("a", charged * ms, confirmed, 0.4 * ms, alone_ms=0.3 * ms)]
        reconciliation.observe(now, states, measured=True)
    assert reconciliation.charged("a") / MS == pytest.approx((counts - charged) * 20_000, abs=200)


def test_the_time_alone_counts_as_far_as_others_hid_no_work_in_it() -> None:
    """Half of it: of 0.3 of a second 0.15, which is more than the driver says."""
    reconciliation = DriverCharges()
    for ms in range(0, 20_000, TICK_MS):
        now = (BEGIN_MS + ms) * MS
        each = state("a", 0.35 * ms, Confirmation(1, 0.1, now - ms % ASKED_MS * MS), 0.4 * ms, alone_ms=0.3 * ms)
        reconciliation.observe(now, [structs.replace(each, alone_factor=0.5)], measured=True)
    assert reconciliation.charged("a") / MS == pytest.approx((0.15 - 0.35) * 20_000, abs=200)


def test_a_figure_says_nothing_of_what_was_before_its_second() -> None:
    """The driver is asked every three seconds, at 3, 6 and 9, and each time says 100 ms more than was charged."""
    reconciliation = DriverCharges()
    for ms in range(0, 10_000, TICK_MS):
        now = (BEGIN_MS + ms) * MS
        confirmed = Confirmation(1, 0.45, now - ms % 3000 * MS)
        reconciliation.observe(now, [state("a", 0.35 * ms, confirmed, ms)], measured=True)
    assert reconciliation.charged("a") / MS == pytest.approx(3 * 100, abs=1)


def test_samples_charge_nothing() -> None:
    _, charged = reconciled(lambda ms: {"a": (0.5, 0.3)}, 20, measured=False)
    assert charged["a"] == pytest.approx(0.3 * 20_000)


@pytest.mark.parametrize("work", [None, Confirmation(1, None, BEGIN_MS * MS)])
def test_without_a_figure_nothing_is_charged(work: Confirmation | None) -> None:
    reconciliation = DriverCharges()
    for ms in range(0, 10_000, TICK_MS):
        states = [state("a", 0.3 * ms, work, ms), state("b", 0.0, None, ms)]
        reconciliation.observe((BEGIN_MS + ms) * MS, states, measured=True)
    assert reconciliation.charged("a") == reconciliation.charged("b") == 0


def test_a_figure_counts_once() -> None:
    reconciliation = DriverCharges()
    for ms in range(0, 10_000, TICK_MS):
        asked_at = (BEGIN_MS + min(ms, 2000)) * MS
        said = Confirmation(1, 0.5, asked_at)
        reconciliation.observe((BEGIN_MS + ms) * MS, [state("a", 0.0, said, ms)], measured=True)
        if ms == 2000:
            before = reconciliation.charged("a")
    assert reconciliation.charged("a") == before > 0


def test_containers_of_one_owner_share_the_difference_of_their_figure() -> None:
    """By what each was charged: the driver's figure is of both."""
    work: Work = lambda ms: {"a": (0.2, 0.3), "b": (0.4, 0.6), "c": (0.1, 0.1)}  # noqa: E731
    real, charged = reconciled(work, 20, owners={"a": "pod", "b": "pod"})
    assert charged == pytest.approx(real, abs=700)
    assert charged["b"] == pytest.approx(2 * charged["a"], rel=0.05)


def test_a_container_that_comes_is_not_charged_for_what_was_before() -> None:
    reconciliation = DriverCharges()
    for ms in range(0, 10_000, TICK_MS):
        now = (BEGIN_MS + ms) * MS
        said = Confirmation(1, 0.5, now - ms % ASKED_MS * MS)
        states = [state("a", 0.5 * ms, said, ms)]
        if ms >= 5000:
            states.append(state("b", 9e9 + 0.5 * ms, said, ms))
        reconciliation.observe(now, states, measured=True)
        if ms == 5500:
            assert reconciliation.charged("b") == 0
    assert abs(reconciliation.charged("a")) < MS and abs(reconciliation.charged("b")) < MS


def test_what_left_is_forgotten() -> None:
    reconciliation = DriverCharges()
    for ms in range(0, 3000, TICK_MS):
        now = (BEGIN_MS + ms) * MS
        said = Confirmation(1, 0.5, now - ms % ASKED_MS * MS)
        reconciliation.observe(now, [state("a", 0.0, said, ms)], measured=True)
    assert reconciliation.charged("a") > 0
    reconciliation.observe(now, [], measured=True)
    assert reconciliation.charged("a") == 0
