"""What is refunded: the difference between what is charged and what was got, also for work longer than the window."""

import numpy as np
import pytest

from lamina.enforcement.accounts import BLOCKED_NS, AccountHolder, Accounts, Refund, TimeEstimate
from lamina.enforcement.activity import NOTHING, WINDOW, Fractions

MS = 1_000_000
BEGIN_MS = 1_000_000


def present(ms: int, since: int, until: int) -> Fractions:
    """1 for each ms of the window that ends with `ms` and lies in the span."""
    numbers = np.arange(ms - WINDOW + 1, ms + 1)
    return ((numbers >= since) & (numbers < until)).astype(np.float64)


def kernel(accounts: Accounts, length_ms: int, end_ms: int) -> Refund:
    """A kernel next to another container that gets half of the time; it is charged when it is done."""
    for ms in range(BEGIN_MS, BEGIN_MS + end_ms + 1, 10):
        there = present(ms, BEGIN_MS, min(ms, BEGIN_MS + length_ms))
        done = ms >= BEGIN_MS + length_ms
        estimate = TimeEstimate(there, there * done, there * 0, there / 2, np.full(WINDOW, float(done)))
        holder = AccountHolder("a", 0.5, length_ms * MS * done, ms < BEGIN_MS + length_ms, estimate, None)
        (refund,) = accounts.refunds(ms * MS, [holder], {})
    return refund


@pytest.mark.parametrize("length_ms", [50, 120, 200, 1000])
def test_half_of_a_kernel_next_to_another_is_refunded_however_long_it_is(length_ms: int) -> None:
    assert kernel(Accounts(), length_ms, length_ms + 300).total == pytest.approx(length_ms * MS / 2, rel=0.02)


def test_nothing_is_refunded_before_it_is_charged() -> None:
    assert kernel(Accounts(), 1000, 900).total == 0


def test_time_that_others_got_is_no_unused_time_until_the_container_does_nothing() -> None:
    accounts = Accounts()
    assert kernel(accounts, 200, 190).blocked == pytest.approx(95 * MS, rel=0.1)
    assert kernel(Accounts(), 5000, 4000).blocked == pytest.approx(BLOCKED_NS / 2, rel=0.1)
    assert kernel(Accounts(), 200, 210).blocked == 0


def test_who_works_next_to_others_waits_for_them_though_its_work_does_not_show() -> None:
    """A program waits after each kernel of 0.1 ms, for 2 ms, while another one has the GPU."""
    accounts = Accounts()
    brief, rest = np.full(WINDOW, 0.05), np.full(WINDOW, 0.95)
    for ms in range(BEGIN_MS, BEGIN_MS + 1000, 10):
        waits, _ = accounts.refunds(
            ms * MS,
            [
                AccountHolder("waits", 0.5, 0, True, TimeEstimate(brief, brief, brief, NOTHING, NOTHING), None),
                AccountHolder("other", 0.5, 0, True, TimeEstimate(rest, rest, rest, NOTHING, NOTHING), None),
            ],
            {},
        )
    assert waits.blocked == pytest.approx(0.95 * BLOCKED_NS, rel=0.01)


def test_a_charge_of_which_nothing_was_observed_is_not_refunded() -> None:
    accounts = Accounts()
    for ms in range(BEGIN_MS, BEGIN_MS + 500, 10):
        (refund,) = accounts.refunds(
            ms * MS, [AccountHolder("a", 0.5, 400 * MS * (ms > BEGIN_MS + 250), True, None, None)], {}
        )
    assert refund.total == 0


def test_what_a_kernel_got_is_refunded_once() -> None:
    accounts = Accounts()
    before = kernel(accounts, 1000, 1300).total
    more = AccountHolder("a", 0.5, 1400 * MS, False, None, None)
    (refund,) = accounts.refunds((BEGIN_MS + 1310) * MS, [more], {})
    assert refund.total == pytest.approx(before)


def test_an_account_goes_on_from_what_was_refunded_before() -> None:
    accounts = Accounts()
    (refund,) = accounts.refunds(BEGIN_MS * MS, [AccountHolder("a", 0.5, 0, False, None, None)], {"a": 7_000})
    assert refund == Refund(7_000, 0)
    (again,) = accounts.refunds((BEGIN_MS + 10) * MS, [AccountHolder("a", 0.5, 0, False, None, None)], {"a": 9_000})
    assert again.total == 7_000
