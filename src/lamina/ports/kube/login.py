"""The header that logs in to an API server, by every way that lightkube knows: tokens, their files, programs.

lightkube asks for it as httpx does, which sends a request, and a second one where the first was answered with 401.
"""

from contextlib import aclosing, suppress

import httpx2 as httpx


class Login:
    """Keeps the header between requests."""

    def __init__(self, auth: httpx.Auth | None, server: str) -> None:
        self._auth = auth
        self._server = server
        self._headers: dict[str, str] | None = None

    async def headers(self) -> dict[str, str]:
        """Raises what lightkube raises, where a token cannot be read or a program fails."""
        if self._headers is None:
            self._headers = await self._ask(refused=False)
        return self._headers

    async def renew(self) -> bool:
        """The server answered 401. Returns whether there is another header now."""
        before, self._headers = self._headers, None
        self._headers = await self._ask(refused=True)
        return self._headers != before

    async def _ask(self, *, refused: bool) -> dict[str, str]:
        if self._auth is None:
            return {}
        request = httpx.Request("GET", self._server)
        async with aclosing(self._auth.async_auth_flow(request)) as flow:
            sent = await anext(flow)
            if refused:
                with suppress(StopAsyncIteration):
                    sent = await flow.asend(httpx.Response(401, request=sent))
        value = sent.headers.get("Authorization")
        return {} if value is None else {"Authorization": value}
