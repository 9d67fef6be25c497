"""Grants of others are left alone for as long as an attempt to bind lasts; our own are not."""

from lamina.control.authorship import Authorship


def test_our_own_grants_are_settled_at_once() -> None:
    authorship = Authorship(25.0)
    authorship.wrote("g1")
    assert authorship.settled("g1", 0.0)


def test_others_are_settled_once_an_attempt_must_have_ended() -> None:
    authorship = Authorship(25.0)
    assert not authorship.settled("g1", 100.0)
    assert not authorship.settled("g1", 124.9)
    assert authorship.settled("g1", 125.0)
    assert not authorship.settled("g2", 125.0)


def test_what_is_remembered_is_bounded() -> None:
    authorship = Authorship(25.0)
    for number in range(30_000):
        authorship.settled(f"g{number}", 0.0)
    assert not authorship.settled("g0", 100.0)
    assert authorship.settled("g29999", 100.0)
