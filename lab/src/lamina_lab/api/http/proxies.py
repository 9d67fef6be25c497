"""Requests that the API server passes on to nodes: only to the metrics of their agents.

On a cluster the agents of all nodes serve them at one port. In a lab, where all nodes are on one machine, each agent
has another port and writes its URL to a file.
"""

import re
from collections.abc import Callable
from pathlib import Path

import aiohttp
from aiohttp import web

from lamina_lab.kubernetes.errors import ApiError

Agents = Callable[[str], Path | None]
"""The file with the URL of the metrics of a node's agent, by the name of the node; None where there is no such node."""

_METRICS = re.compile(r"/api/v1/nodes/(?P<node>[^/:]+):9394/proxy/metrics")
_TIMEOUT = aiohttp.ClientTimeout(total=5)


def none(node: str) -> None:
    """No node has an agent."""


def node_of(path: str) -> str | None:
    """The node whose metrics are at this path of the API, None if the path is another one."""
    found = _METRICS.fullmatch(path)
    return found["node"] if found else None


async def metrics(agents: Agents, node: str) -> web.Response:
    """The metrics of a node's agent. Raises ApiError with 503 where it does not answer, as Kubernetes does."""
    file = agents(node)
    try:
        url = file.read_text().strip() if file is not None else ""
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session, session.get(url) as answer:
            return web.Response(status=answer.status, body=await answer.read(), content_type="text/plain")
    except (OSError, aiohttp.ClientError, TimeoutError) as error:
        raise ApiError(503, "ServiceUnavailable", f"error trying to reach service: node {node}: {error}") from error
