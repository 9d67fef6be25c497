"""What the accounts of all agents grew by within a time, from a Prometheus that scrapes them."""

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
from msgspec import Meta, Struct

from lamina.errors import BadInput, Outside
from lamina.operations.cost.accounts import GIBIBYTES, GPUS, LABELS, SECONDS, WORKLOADS, ClusterAccounts

_TIMEOUT_S = 60.0
_MAX_BYTES = 64 * 2**20
"""Bytes of one answer."""
_TIME = re.compile(r"[1-9][0-9]{0,5}[smhdwy]")
_GROUPS = {
    f"{WORKLOADS}{SECONDS}": "namespace, kind, workload, model, part, figure",
    f"{WORKLOADS}{GIBIBYTES}": "namespace, kind, workload, model, figure",
    f"{LABELS}{SECONDS}": "namespace, label, value, model, part, figure",
    f"{LABELS}{GIBIBYTES}": "namespace, label, value, model, figure",
    f"{GPUS}total": "model, part, figure",
}
"""The labels that remain of each series. What was folded has grown before."""


class _Sample(Struct):
    metric: dict[str, str]
    value: tuple[Any, Annotated[str, Meta(max_length=64)]]


class _Data(Struct):
    result: list[_Sample] = []


class _Answer(Struct):
    data: _Data = msgspec.field(default_factory=_Data)
    error: str = ""


def checked_since(since: str) -> str:
    """The time as Prometheus writes it. Raises BadInput."""
    if not _TIME.fullmatch(since):
        raise BadInput(f"--since must be a number of s, m, h, d, w or y, such as 30d, got {since!r}")
    return since


async def grown_accounts(address: str, since: str) -> ClusterAccounts:
    """Ask the Prometheus at an address such as http://127.0.0.1:9090. Raises BadInput, Outside."""
    if not _is_address(address):
        raise BadInput(f"--prometheus must be an address such as http://127.0.0.1:9090, got {address!r}")
    accounts = ClusterAccounts()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S)) as session:
        for name, labels in _GROUPS.items():
            query = f"sum by ({labels}) (increase({name}[{since}]))"
            for sample in (await _ask(session, address, query)).data.result:
                try:
                    accounts.add(name, sample.metric, float(sample.value[1]))
                except (KeyError, ValueError) as error:
                    raise Outside(f"{address} has series {name} that agents do not serve: {error!r}") from error
    return accounts


async def _ask(session: aiohttp.ClientSession, address: str, query: str) -> _Answer:
    try:
        async with session.post(f"{address.rstrip('/')}/api/v1/query", data={"query": query}) as response:
            text = await response.content.read(_MAX_BYTES + 1)
            while len(text) <= _MAX_BYTES and (more := await response.content.read(_MAX_BYTES)):
                text += more
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Outside(f"{address} cannot be read: {str(error) or f'no answer in {_TIMEOUT_S:.0f} s'}") from error
    if len(text) > _MAX_BYTES:
        raise Outside(f"{address} answers with more than {_MAX_BYTES} bytes; ask for a shorter time")
    try:
        answer = msgspec.json.decode(text, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Outside(f"{address} does not answer as Prometheus does, with status {response.status}") from error
    if answer.error or response.status != 200:
        raise Outside(f"{address} refuses the query: {answer.error or f'status {response.status}'}")
    return answer


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False
