"""A Prometheus, over HTTP. Its answers are bounded in time and size, and what cannot be true is refused."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, TypeVar

import aiohttp
import msgspec
from msgspec import Meta, Struct

from lamina.errors import Outside
from lamina.ports.prometheus.protocol import Sample, Series

_MAX_BYTES = 64 * 2**20
"""Bytes of one answer."""
_Value = tuple[float, Annotated[str, Meta(max_length=64)]]
_T = TypeVar("_T")


class _NowSample(Struct):
    metric: dict[str, str]
    value: tuple[Any, Annotated[str, Meta(max_length=64)]]


class _NowData(Struct):
    result: list[_NowSample] = []


class _Now(Struct):
    data: _NowData = msgspec.field(default_factory=_NowData)
    error: str = ""


class _RangeSeries(Struct):
    metric: dict[str, str]
    values: list[_Value]


class _RangeData(Struct):
    result: list[_RangeSeries] = []


class _Range(Struct):
    data: _RangeData = msgspec.field(default_factory=_RangeData)
    error: str = ""


class HttpPrometheus:
    """The Prometheus at an address such as http://127.0.0.1:9090, which has `timeout_s` for each answer. Questions
    share connections, which stay open until `close`."""

    def __init__(self, address: str, *, timeout_s: float, max_bytes: int = _MAX_BYTES) -> None:
        self._address = address.rstrip("/")
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._session: aiohttp.ClientSession | None = None

    async def query(self, query: str) -> list[Sample]:
        answer = await self._ask("query", {"query": query}, _Now)
        self._refuse_if(answer.error)
        return [Sample(each.metric, self._number(each.value[1], each.metric)) for each in answer.data.result]

    async def query_range(self, query: str, start: float, end: float, step: int) -> list[Series]:
        asked = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": str(step)}
        answer = await self._ask("query_range", asked, _Range)
        self._refuse_if(answer.error)
        found = []
        for each in answer.data.result:
            points = [(moment, self._number(text, each.metric)) for moment, text in each.values]
            moments = [start - step, *(moment for moment, _ in points), end + step]
            if any(not earlier < later for earlier, later in pairwise(moments)):
                raise Outside(f"{self._address} answers with moments that were not asked for, of {_named(each.metric)}")
            found.append(Series(each.metric, points))
        return found

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _number(self, text: str, labels: Mapping[str, str]) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise Outside(f"{self._address} answers with {text!r}, which is no number, for {_named(labels)}")
        return value

    def _refuse_if(self, error: str) -> None:
        if error:
            raise Outside(f"{self._address} refuses the query: {error}")

    async def _ask(self, what: str, asked: Mapping[str, str], answer: type[_T]) -> _T:
        if self._session is None:  # not before a loop runs
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._timeout_s))
        asking = self._session.post(f"{self._address}/api/v1/{what}", data=asked, allow_redirects=False)
        try:
            async with asking as response:
                text = await response.content.read(self._max_bytes + 1)
                while len(text) <= self._max_bytes and (more := await response.content.read(self._max_bytes)):
                    text += more
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = str(error) or f"no answer in {self._timeout_s:.0f} s"
            raise Outside(f"{self._address} cannot be read: {reason}") from error
        if len(text) > self._max_bytes:
            raise Outside(f"{self._address} answers with more than {self._max_bytes} bytes; ask for a shorter time")
        try:
            found = msgspec.json.decode(text, type=answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            status = response.status
            raise Outside(f"{self._address} does not answer as Prometheus does, with status {status}") from error
        if response.status != 200:
            self._refuse_if(getattr(found, "error", "") or f"status {response.status}")
        return found


def _named(labels: Mapping[str, str]) -> str:
    """The series in a few words: its labels may be long."""
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))[:200] or "a series without labels"
