"""What a chart is. Numbers that are not finite count as absent, so a chart can always be drawn."""

import math

from msgspec import Struct


class Line(Struct, frozen=True):
    """A curve: its points from left to right."""

    name: str
    points: tuple[tuple[float, float], ...]

    @property
    def finite(self) -> tuple[tuple[float, float], ...]:
        """The points that can be drawn."""
        return tuple(point for point in self.points if all(map(math.isfinite, point)))


class LineChart(Struct, frozen=True, kw_only=True):
    """Curves over one axis, which starts at 0. Values are from 0 to `top`; those beyond are drawn at the edge."""

    title: str
    axis: str
    unit: str
    top: float
    lines: tuple[Line, ...]

    @property
    def last(self) -> float:
        """The right end of the axis, over 0."""
        return max((x for line in self.lines for x, _ in line.finite), default=1.0) or 1.0


class Bar(Struct, frozen=True, kw_only=True):
    """One figure, with the limit that it is compared with. Without a figure, `absent` says why."""

    name: str
    value: float | None = None
    limit: float | None = None
    absent: str = "not tested"
    wrong: bool = False

    @property
    def figure(self) -> float | None:
        """The value if it can be drawn."""
        return _finite(self.value)

    @property
    def mark(self) -> float | None:
        """The limit if it can be drawn."""
        return _finite(self.limit)


class BarChart(Struct, frozen=True, kw_only=True):
    """Bars in one unit, from 0. A negative value has a label and no length."""

    title: str
    unit: str
    bars: tuple[Bar, ...]
    limit_means: str = "limit"
    """What the marks of the limits stand for."""

    @property
    def top(self) -> float:
        """The largest figure or limit, over 0."""
        found = [figure for bar in self.bars for figure in (bar.figure, bar.mark) if figure is not None]
        return max([*found, 0.0]) or 1.0

    def label(self, bar: Bar) -> str:
        """The figure and the limit in words."""
        if bar.figure is None:
            return bar.absent
        limit = "" if bar.mark is None else f" ({self.limit_means} {number(bar.mark)})"
        return f"{number(bar.figure)} {self.unit}".rstrip() + limit


Chart = LineChart | BarChart


def part(value: float | None, top: float) -> float:
    """Where the value is between 0 and `top`, from 0 to 1. What is absent or beyond is at the edge."""
    return 0.0 if value is None else min(1.0, max(0.0, value / top))


def number(value: float) -> str:
    """A finite number for readers: three digits at least, and none after the point in large ones."""
    return f"{value:,.0f}" if abs(value) >= 100 or value.is_integer() else f"{value:.3g}"


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
