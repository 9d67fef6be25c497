"""What a request is answered that cannot be: one line, and a status or field that the caller understands.

A defect of Lamina is logged with its traceback, once for several in a row, and counted; the answer only names it.
"""

from collections.abc import Awaitable, Callable

from aiohttp import web

from lamina.errors import LaminaError
from lamina.ports.set_aside import SetAside

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Failures:
    """The failures of one service."""

    def __init__(self, set_aside: SetAside) -> None:
        self._set_aside = set_aside

    def sentence(self, verb: str, error: Exception) -> str:
        """What to answer to a request of this verb that ended with `error`."""
        self._set_aside.add("request", verb, error)
        if isinstance(error, LaminaError):
            return f"Lamina could not answer {verb}: {' '.join(str(error).split())}"
        return f"Lamina could not answer {verb} because of a defect ({type(error).__name__}); its log has more"

    def answering(self, verb: str, handler: Handler) -> Handler:
        """The handler, whose exceptions become a response with status 500."""

        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                return await handler(request)
            except web.HTTPException:
                raise
            except Exception as error:
                return web.Response(status=500, text=self.sentence(verb, error))

        return handle


def malformed(what: str, error: Exception) -> web.Response:
    """The response to a body that is not `what` it should be."""
    return web.Response(status=400, text=f"the body is not {what}: {' '.join(str(error).split())}")
