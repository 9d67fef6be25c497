"""A Prometheus that answers what a test says. It can be imported by tests of other packages."""

from collections.abc import Mapping
from typing import NamedTuple

from lamina.errors import Outside
from lamina.ports.prometheus.protocol import Sample, Series


class AskedRange(NamedTuple):
    """A question about the past."""

    query: str
    start: float
    end: float
    step: int


class FakePrometheus:
    """`ranges` and `samples` are answers by a text that the query contains; other queries have no series. `problem`
    is raised instead, where it is set."""

    def __init__(
        self, ranges: Mapping[str, list[Series]] | None = None, samples: Mapping[str, list[Sample]] | None = None
    ) -> None:
        self.ranges = dict(ranges or {})
        self.samples = dict(samples or {})
        self.problem = ""
        self.asked: list[AskedRange] = []

    async def query(self, query: str) -> list[Sample]:
        self._check()
        return next((answer for text, answer in self.samples.items() if text in query), [])

    async def query_range(self, query: str, start: float, end: float, step: int) -> list[Series]:
        self.asked.append(AskedRange(query, start, end, step))
        self._check()
        return next((answer for text, answer in self.ranges.items() if text in query), [])

    async def close(self) -> None:
        """It has nothing open."""

    def _check(self) -> None:
        if self.problem:
            raise Outside(self.problem)
