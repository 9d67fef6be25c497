"""Schedules of CronJobs: what they mean, in time zones too, and the sentences about those that mean nothing."""

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from lamina_lab.kubernetes.cron import ScheduleError, parse

BERLIN = ZoneInfo("Europe/Berlin")


def following(text: str, start: str, count: int, zone: tzinfo = UTC) -> list[str]:
    """The next times in the zone, from a time in UTC."""
    moment = datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp()
    found = []
    for _ in range(count):
        at = parse(text).next_after(moment, zone)
        assert at is not None
        assert at > moment
        moment = at
        found.append(datetime.fromtimestamp(at, zone).strftime("%a %d %b %H:%M"))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", ["Thu 01 Jan 00:01", "Thu 01 Jan 00:02"]),
        ("*/15 * * * *", ["Thu 01 Jan 00:15", "Thu 01 Jan 00:30"]),
        ("50/5 3 * * *", ["Thu 01 Jan 03:50", "Thu 01 Jan 03:55"]),
        ("0 9-17/4 * * MON-fri", ["Thu 01 Jan 09:00", "Thu 01 Jan 13:00", "Thu 01 Jan 17:00", "Fri 02 Jan 09:00"]),
        ("30 6 1,15 * ?", ["Thu 01 Jan 06:30", "Thu 15 Jan 06:30", "Sun 01 Feb 06:30"]),
        ("0 0 13 * fri", ["Fri 02 Jan 00:00", "Fri 09 Jan 00:00", "Tue 13 Jan 00:00"]),  # either of the two
        ("0 0 */2 * 0", ["Sat 03 Jan 00:00", "Sun 04 Jan 00:00"]),
        ("0 0 1-7 * *", ["Fri 02 Jan 00:00"]),
        ("0 0 29 feb *", ["Tue 29 Feb 00:00"]),
        ("@hourly", ["Thu 01 Jan 01:00"]),
        ("@daily", ["Fri 02 Jan 00:00"]),
        ("@weekly", ["Sun 04 Jan 00:00"]),
        ("@monthly", ["Sun 01 Feb 00:00"]),
        ("@yearly", ["Fri 01 Jan 00:00"]),
        ("@every 1h30m", ["Thu 01 Jan 01:30", "Thu 01 Jan 03:00"]),
    ],
)
def test_the_times_of_a_schedule(text: str, expected: list[str]) -> None:
    assert following(text, "2026-01-01T00:00:00", len(expected)) == expected


def test_a_time_zone_and_its_summer_time() -> None:
    assert following("30 2 * * *", "2026-03-27T12:00:00", 3, BERLIN) == [
        "Sat 28 Mar 02:30",
        "Mon 30 Mar 02:30",  # the clocks go from 2 to 3 on the 29th
        "Tue 31 Mar 02:30",
    ]
    assert following("30 2 * * *", "2026-10-24T12:00:00", 3, BERLIN) == [
        "Sun 25 Oct 02:30",
        "Sun 25 Oct 02:30",  # and from 3 back to 2
        "Mon 26 Oct 02:30",
    ]
    cairo = ZoneInfo("Africa/Cairo")  # its summer time begins at midnight
    assert following("0 0 * * *", "2026-04-22T12:00:00", 2, cairo) == ["Thu 23 Apr 00:00", "Sat 25 Apr 00:00"]


def test_a_day_that_never_comes() -> None:
    assert parse("0 0 30 feb *").next_after(0.0, UTC) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("* 5-3 * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("* * L * *", 'failed to parse int from L: strconv.Atoi: parsing "L": invalid syntax'),
        ("@reboot", "unrecognized descriptor: @reboot"),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
    ],
)
def test_schedules_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        parse(text)
    assert str(refused.value) == why
