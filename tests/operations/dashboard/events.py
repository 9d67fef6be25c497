"""Events of the server, as a client reads them."""

import json
from typing import Any

import aiohttp


class Events:
    """The events of one stream."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> tuple[str, dict[str, Any]]:
        kind = (await self._response.content.readline()).decode().removeprefix("event: ").strip()
        data = (await self._response.content.readline()).decode().removeprefix("data: ")
        await self._response.content.readline()
        return kind, json.loads(data) if data else {}
