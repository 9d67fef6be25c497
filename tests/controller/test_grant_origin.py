"""Grants of others are left alone for as long as an attempt to bind lasts; our own are not."""

from lamina.controller.binding.pod_grants import GrantOrigins


def test_our_own_grants_are_settled_at_once() -> None:
    origins = GrantOrigins(25.0)
    origins.record_own("g1")
    assert origins.may_adopt("g1", 0.0)


def test_others_are_settled_once_an_attempt_must_have_ended() -> None:
    origins = GrantOrigins(25.0)
    assert not origins.may_adopt("g1", 100.0)
    assert not origins.may_adopt("g1", 124.9)
    assert origins.may_adopt("g1", 125.0)
    assert not origins.may_adopt("g2", 125.0)


def test_what_is_remembered_is_bounded() -> None:
    origins = GrantOrigins(25.0)
    for number in range(30_000):
        origins.may_adopt(f"g{number}", 0.0)
    assert not origins.may_adopt("g0", 100.0)
    assert origins.may_adopt("g29999", 100.0)
