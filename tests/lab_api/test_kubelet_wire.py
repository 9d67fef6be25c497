"""The API server's side of the wire to a kubelet, against a small kubelet on a Unix socket."""

import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web

from lamina_lab.api.http.kubelets import ExecOptions, KubeletError, LogOptions, UnixKubelets
from lamina_lab.kubernetes import exec_channels


async def _logs(request: web.Request) -> web.StreamResponse:
    if request.match_info["pod"] == "gone":
        return web.Response(status=404, text="pod gone is not here\n")
    return web.Response(text=json.dumps(sorted(request.query.items())))


async def _exec(request: web.Request) -> web.StreamResponse:
    """Sends back every frame, and its command at the end."""
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        if message.type is WSMsgType.BINARY:
            await socket.send_bytes(message.data)
            if message.data[0] == exec_channels.CLOSE:
                break
    await socket.send_bytes(bytes((exec_channels.ERROR,)) + json.dumps(list(request.query.items())).encode())
    await socket.close()
    return socket


@pytest.fixture
async def nodes() -> AsyncIterator[UnixKubelets]:
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        app = web.Application()
        app.router.add_get("/logs/{namespace}/{pod}/{container}", _logs)
        app.router.add_get("/exec/{namespace}/{pod}/{container}", _exec)
        runner = web.AppRunner(app)
        await runner.setup()
        path = Path(folder) / "kubelet.sock"
        await web.UnixSite(runner, str(path)).start()
        sockets = {"n1": path, "dead": Path(folder) / "missing.sock"}
        made = UnixKubelets(sockets.get)
        yield made
        await made.close()
        await runner.cleanup()


async def test_logs_carry_their_options(nodes: UnixKubelets) -> None:
    options = LogOptions(follow=True, tail=5, since_seconds=60)
    text = b"".join([chunk async for chunk in await nodes.logs("n1", "default", "a", "m", options)])
    assert dict(json.loads(text)) == {
        "follow": "true",
        "previous": "false",
        "timestamps": "false",
        "tail": "5",
        "sinceSeconds": "60",
    }


async def test_exec_carries_frames_in_both_directions(nodes: UnixKubelets) -> None:
    session = await nodes.exec("n1", "default", "a", "m", ExecOptions(("sh", "-c", "a b"), tty=True, stdin=True))
    await session.send(exec_channels.STDIN, b"hello")
    await session.send(exec_channels.RESIZE, b'{"Width":80,"Height":24}')
    await session.send(exec_channels.CLOSE, b"\0")
    *echoes, last = [frame async for frame in session.frames()]
    assert echoes == [(0, b"hello"), (4, b'{"Width":80,"Height":24}'), (255, b"\0")]
    assert last[0] == exec_channels.ERROR
    words = [["command", "sh"], ["command", "-c"], ["command", "a b"]]
    assert json.loads(last[1]) == [*words, ["tty", "true"], ["stdin", "true"]]
    await session.send(exec_channels.STDIN, b"too late")
    await session.close()


@pytest.mark.parametrize(
    ("node", "pod", "status", "message"),
    [
        ("n1", "gone", 404, "pod gone is not here"),
        ("dead", "a", 502, "the kubelet of node dead does not answer"),
        ("n2", "a", 502, "node n2 has no kubelet"),
    ],
)
async def test_failures_come_before_the_first_byte(
    nodes: UnixKubelets, node: str, pod: str, status: int, message: str
) -> None:
    with pytest.raises(KubeletError, match=message) as refused:
        await nodes.logs(node, "default", pod, "m", LogOptions())
    assert refused.value.status == status
    if node != "n1":
        with pytest.raises(KubeletError, match=message):
            await nodes.exec(node, "default", pod, "m", ExecOptions(("true",)))
