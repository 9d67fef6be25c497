"""Read pages of metrics at intervals, and give the board what containers use."""

import asyncio
from collections.abc import Sequence

import aiohttp

from lamina.errors import Outside
from lamina.operations.dashboard.board import Board
from lamina.ports.clock import Clock
from lamina.ports.prometheus import checked_address
from lamina.report.cluster_use import ClusterUse

EVERY_S = 5.0
_TIMEOUT_S = 5.0
_AT_ONCE = 32
_MAX_BYTES = 64 * 2**20
"""Bytes of one page."""


class UsagePages:
    """The pages at `addresses`. Raises BadInput for one that is no address."""

    def __init__(self, addresses: Sequence[str], clock: Clock, board: Board) -> None:
        for address in addresses:
            checked_address(address, where="--metrics", example="http://127.0.0.1:9394/metrics")
        self._addresses = addresses
        self._clock = clock
        self._board = board

    async def run(self) -> None:
        """Read until canceled. What cannot be read is a sentence on the board."""
        if not self._addresses:
            return
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        connector = aiohttp.TCPConnector(limit=_AT_ONCE)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            while True:
                await self._round(session)
                await self._clock.sleep(EVERY_S)

    async def _round(self, session: aiohttp.ClientSession) -> None:
        answers = await asyncio.gather(*(_read(session, address) for address in self._addresses))
        use = ClusterUse()
        problems = []
        for address, answer in zip(self._addresses, answers, strict=True):
            if isinstance(answer, Outside):
                problems.append(f"{address} cannot be read: {answer}")
            else:
                use.join(answer)
        others = len(problems) - 1
        more = f"; {others} more {'page' if others == 1 else 'pages'} cannot be read either" if others else ""
        self._board.use(use, problems[0] + more if problems else "", self._clock.wall())


async def _read(session: aiohttp.ClientSession, address: str) -> ClusterUse | Outside:
    try:
        async with session.get(address, allow_redirects=False) as response:
            if response.status != 200:
                return Outside(f"it answers with status {response.status}")
            page = await response.content.read(_MAX_BYTES + 1)
            while len(page) <= _MAX_BYTES and (more := await response.content.read(_MAX_BYTES)):
                page += more
        if len(page) > _MAX_BYTES:
            return Outside(f"it has more than {_MAX_BYTES} bytes")
        return await asyncio.to_thread(_use_in, page.decode(errors="replace"))
    except Outside as error:
        return error
    except (aiohttp.ClientError, TimeoutError) as error:
        return Outside(str(error) or f"no answer in {_TIMEOUT_S:.0f} s")


def _use_in(page: str) -> ClusterUse:
    """What a page of metrics says, an agent's or one of Prometheus. Raises Outside where it is no such page."""
    use = ClusterUse()
    try:
        use.add(None, page)
    except (ValueError, KeyError, IndexError) as error:
        raise Outside(f"it is not a page of metrics: {error}") from error
    return use
