"""Metrics over HTTPS, and only for callers that the API server allows to read them."""

import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from aiohttp import web

from lamina.ports.caller_reviews import CallerReviews
from lamina.ports.certificates.authority import SERVER, Authority
from lamina.ports.certificates.tls import server_context, use_certificate

_VALID = timedelta(days=3650)
"""Longer than a process runs."""
Handler = Callable[[web.Request], Awaitable[web.Response]]


def metrics_context(now: float, name: str = "metrics") -> ssl.SSLContext:
    """TLS with a certificate for this process alone. It keeps tokens secret; callers cannot verify it."""
    context = server_context()
    authority = Authority(name, datetime.fromtimestamp(now, UTC), _VALID)
    use_certificate(context, *authority.sign(f"lamina {name}", SERVER, ["localhost"]))
    return context


def for_allowed_callers(handler: Handler, reviews: CallerReviews) -> Handler:
    """A handler that calls this one for callers that are allowed, and refuses others with the reason."""

    async def answer(request: web.Request) -> web.Response:
        verdict = await reviews.verdict(request.headers.get("Authorization", ""))
        if verdict.status == 200:
            return await handler(request)
        headers = {"WWW-Authenticate": "Bearer"} if verdict.status == 401 else {}
        return web.Response(status=verdict.status, text=verdict.reason, headers=headers)

    return answer
