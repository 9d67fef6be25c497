"""Reading what a client sends, bounded in size and time, because any client that connects can send it."""

import asyncio

from aiohttp import web

from lamina.errors import BadInput

LARGEST_BODY = 16 * 2**20
"""Bytes. Of 5,000 nodes, kube-scheduler sends up to 1.3 MB of names with a pod of up to 3 MiB, and to preempt the UIDs
of all pods on a tenth of the nodes, up to 6 MB."""
READ_S = 10.0
"""kube-scheduler sends a request at once."""


async def read_body(request: web.Request) -> bytes:
    """The whole body. Raises BadInput for one that is too large, or not there in time."""
    try:
        async with asyncio.timeout(READ_S):
            return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise BadInput(
            f"the request has more than {LARGEST_BODY // 2**20} MiB; set nodeCacheCapable to true for this extender in "
            "kube-scheduler's configuration, so that it sends names and not whole nodes"
        ) from error
    except TimeoutError as error:
        raise BadInput(f"the request did not arrive within {READ_S:g} s; check the network between the two") from error
