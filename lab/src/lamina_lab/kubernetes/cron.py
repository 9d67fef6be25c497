"""Schedules of CronJobs, read as Kubernetes reads them: five fields, a descriptor such as @daily, or @every DURATION.

A library for cron would accept what the API server refuses (seconds, `L`, `#`, Sunday as 7), refuse what it accepts,
and have other sentences. Times that a change to summer time skips do not run, and those of the hour that repeats run
twice, as in Kubernetes.
"""

import re
from datetime import datetime, timedelta, tzinfo

from msgspec import Struct

_NAMES_OF_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: at for at, name in enumerate(_NAMES_OF_MONTHS, 1)}
_DAYS = {name: at for at, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_YEARS_AHEAD = 5


class ScheduleError(Exception):
    """A schedule that Kubernetes refuses, with its sentence."""


class Schedule(Struct, frozen=True):
    """The values of each field, or only a period in seconds. `either_day`: one of the two fields for days is enough."""

    fields: tuple[frozenset[int], ...] = ()
    either_day: bool = False
    every_s: float = 0.0

    def next_after(self, moment: float, zone: tzinfo) -> float | None:
        """The next time in seconds since 1970 after `moment`; None if there is none in five years."""
        if self.every_s:
            return float(int(moment)) + self.every_s
        at = _local(int(moment) // 60 * 60 + 60, zone)
        last = at.year + _YEARS_AHEAD
        minutes, hours, _, months, _ = self.fields
        while at.year <= last:
            if at.month not in months:
                following = datetime(at.year + at.month // 12, at.month % 12 + 1, 1)
                at = _local(following.replace(tzinfo=zone).timestamp(), zone)
            elif not self._on(at):
                following = datetime(at.year, at.month, at.day) + timedelta(days=1)
                at = _local(following.replace(tzinfo=zone).timestamp(), zone)
            elif at.hour not in hours:
                at = _local(at.timestamp() + (60 - at.minute) * 60, zone)
            elif at.minute not in minutes:
                at = _local(at.timestamp() + 60, zone)
            else:
                return at.timestamp()
        return None

    def _on(self, at: datetime) -> bool:
        in_month, in_week = at.day in self.fields[2], at.isoweekday() % 7 in self.fields[4]
        return in_month or in_week if self.either_day else in_month and in_week


def _local(moment: float, zone: tzinfo) -> datetime:
    """A time that exists: midnight is skipped where summer time begins then."""
    return datetime.fromtimestamp(moment, zone)


def parse(text: str) -> Schedule:
    """Raises ScheduleError."""
    if not text:
        raise ScheduleError("empty spec string")
    if text.startswith("@every "):
        return Schedule(every_s=max(1.0, float(int(_duration(text.removeprefix("@every "), text)))))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        return parse(_DESCRIPTORS[text])
    words = text.split()
    if len(words) != len(_FIELDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(words)}: [{' '.join(words)}]")
    fields = tuple(_field(word, *bounds) for word, bounds in zip(words, _FIELDS, strict=True))
    starred = any(re.fullmatch(r"[*?](/1)?", part) for at in (2, 4) for part in words[at].split(","))
    return Schedule(fields, either_day=not starred)


def _field(text: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    return frozenset(value for part in text.split(",") if part for value in _range(part, low, high, names))


def _range(part: str, low: int, high: int, names: dict[str, int]) -> range:
    span, *steps = part.split("/")
    first, *rest = span.split("-")
    if len(rest) > 1:
        raise ScheduleError(f"too many hyphens: {part}")
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {part}")
    if first in ("*", "?"):
        begin, end = low, high
    else:
        begin = _number(first, names)
        end = _number(rest[0], names) if rest else high if steps else begin
    step = _number(steps[0], {}) if steps else 1
    if begin < low:
        raise ScheduleError(f"beginning of range ({begin}) below minimum ({low}): {part}")
    if end > high:
        raise ScheduleError(f"end of range ({end}) above maximum ({high}): {part}")
    if begin > end:
        raise ScheduleError(f"beginning of range ({begin}) beyond end of range ({end}): {part}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {part}")
    return range(begin, end + 1, step)


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"\+?[0-9]{1,9}", text):
        raise ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    return int(text)


def _duration(text: str, whole: str) -> float:
    if not re.fullmatch(r"([0-9]+(\.[0-9]+)?(h|ms|m|s))+", text):
        raise ScheduleError(f'failed to parse duration {whole}: time: invalid duration "{text}"')
    return sum(float(amount) * _UNITS[unit] for amount, _, unit in re.findall(r"([0-9]+(\.[0-9]+)?)(h|ms|m|s)", text))
