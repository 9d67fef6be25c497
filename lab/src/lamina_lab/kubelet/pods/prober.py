"""Probes containers with commands, HTTP requests and connections until canceled."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp

from lamina_lab.kubelet.pods.probes import Probe, Tally, port_number

Check = Callable[[Probe], Awaitable[str]]
"""One probe: returns "" for success, else the problem."""


async def probe_repeatedly(probe: Probe, check: Check, on_result: Callable[[bool | None, str], bool]) -> None:
    """Probe until `on_result`, called with the result so far and the latest problem, returns False."""
    await asyncio.sleep(probe.initial_delay_s)
    tally = Tally(probe)
    while True:
        try:
            async with asyncio.timeout(probe.timeout_s):
                problem = await check(probe)
        except TimeoutError:
            problem = f"timed out after {probe.timeout_s:g}s"
        if not on_result(tally.note(not problem), problem):
            return
        await asyncio.sleep(probe.period_s)


async def ask_http(probe: Probe, container: Mapping[str, Any], pod_ip: str) -> str:
    action = probe.action["httpGet"]
    host = action.get("host") or pod_ip
    scheme = str(action.get("scheme") or "HTTP").lower()
    headers = {entry["name"]: entry["value"] for entry in action.get("httpHeaders") or ()}
    url = f"{scheme}://{host}:{port_number(action['port'], container)}/{str(action.get('path') or '/').lstrip('/')}"
    try:
        async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as answer:
            good = 200 <= answer.status < 400
            return "" if good else f"HTTP probe failed with statuscode: {answer.status}"
    except (aiohttp.ClientError, OSError) as error:
        return f'Get "{url}": {error}'


async def ask_tcp(probe: Probe, container: Mapping[str, Any], pod_ip: str) -> str:
    action = probe.action["tcpSocket"]
    host, port = action.get("host") or pod_ip, port_number(action["port"], container)
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return f"dial tcp {host}:{port}: {error.strerror or error}"
    writer.close()
    return ""
