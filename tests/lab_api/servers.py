"""An API server in a thread of its own, so that a test can wait for kubectl without stopping it."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from lamina.ports.kube import Object
from lamina_lab.api.http.kubelets import ExecOptions, ExecSession, KubeletError, LogOptions
from lamina_lab.api.server import ApiServer, serve
from lamina_lab.api.storage.lifecycle import Deletion
from lamina_lab.api.storage.verbs import Call
from lamina_lab.kubernetes import exec_channels

T = TypeVar("T")


class FakeKubelets:
    """Kubelets that know a few commands: `cat`, `exit CODE`, `fail TEXT` (to standard error) and `size`."""

    def __init__(self) -> None:
        self.logged: list[tuple[str, str, str, str, LogOptions]] = []
        self.ran: list[tuple[str, str, str, str, ExecOptions]] = []
        self.closed = threading.Event()
        self.follow_on = asyncio.Event()

    async def logs(
        self, node: str, namespace: str, pod: str, container: str, options: LogOptions
    ) -> AsyncIterator[bytes]:
        self.logged.append((node, namespace, pod, container, options))
        if node == "broken":
            raise KubeletError(502, "the kubelet of node broken does not answer")
        return self._lines(options)

    async def _lines(self, options: LogOptions) -> AsyncIterator[bytes]:
        for line in ("one\n", "two\n", "three\n")[-(options.tail or 3) :]:
            yield line.encode()
        if options.follow:
            await self.follow_on.wait()
            yield b"four\n"

    async def exec(self, node: str, namespace: str, pod: str, container: str, options: ExecOptions) -> ExecSession:
        self.ran.append((node, namespace, pod, container, options))
        return FakeSession(options, self.closed)


class FakeSession:
    def __init__(self, options: ExecOptions, closed: threading.Event) -> None:
        self._options = options
        self._input: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
        self._closed = closed

    async def send(self, channel: int, data: bytes) -> None:
        await self._input.put((channel, data))

    async def close(self) -> None:
        self._closed.set()
        await self._input.put((exec_channels.CLOSE, b"\0"))

    async def frames(self) -> AsyncIterator[tuple[int, bytes]]:
        name, *rest = self._options.command
        code = int(rest[0]) if name == "exit" else 0
        if name == "fail":
            yield exec_channels.STDERR, rest[0].encode()
        elif name in ("cat", "size"):
            wanted = exec_channels.STDIN if name == "cat" else exec_channels.RESIZE
            async for data in self._until_closed(wanted):
                yield exec_channels.STDOUT, data
                if name == "size" or data.endswith(b"quit\n"):
                    break
        yield exec_channels.ERROR, json.dumps(_status(code)).encode()

    async def _until_closed(self, wanted: int) -> AsyncIterator[bytes]:
        while True:
            channel, data = await self._input.get()
            if channel == exec_channels.CLOSE:
                return
            if channel == wanted:
                yield data


def _status(code: int) -> Object:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    causes = [{"reason": "ExitCode", "message": str(code)}]
    message = f"command terminated with non-zero exit code: {code}"
    failure = {"metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": message}
    return {**failure, "details": {"causes": causes}}


class Threaded:
    """A running server, driven from the test's own thread."""

    def __init__(self) -> None:
        self.kubelets = FakeKubelets()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.server: ApiServer = self.do(serve(self.kubelets))

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.start(work).result(10)

    def soon(self, work: Any) -> None:
        self._loop.call_soon_threadsafe(work)

    def close(self) -> None:
        self.do(self.server.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def create(self, resource: str, obj: Object, namespace: str = "default") -> Object:
        served = self.server.api.catalog.named(resource)
        kind = {"apiVersion": served.api_version, "kind": served.kind}
        place = namespace if served.namespaced else ""
        return self.do(self.server.api.create(served, place, {**kind, **obj}, Call())).obj

    def get(self, resource: str, name: str, namespace: str = "default") -> Object:
        served = self.server.api.catalog.named(resource)
        return self.server.api.get(served, namespace if served.namespaced else "", name).obj

    def patch(
        self, resource: str, name: str, patch: Object, subresource: str = "", namespace: str = "default"
    ) -> Object:
        served = self.server.api.catalog.named(resource)
        place = namespace if served.namespaced else ""
        change = self.server.api.patch(served, place, name, lambda obj: {**obj, **patch}, Call(), subresource)
        return self.do(change).obj

    def delete(self, resource: str, name: str, grace: int | None = None, namespace: str = "default") -> None:
        served = self.server.api.catalog.named(resource)
        place = namespace if served.namespaced else ""
        self.do(self.server.api.delete(served, place, name, Deletion(grace=grace), Call()))

    def running_pod(self, name: str, containers: tuple[str, ...] = ("main",), node: str = "n1") -> Object:
        """A pod that a kubelet says is running."""
        spec = {"containers": [{"name": each, "image": "busybox"} for each in containers]}
        self.create("pods", {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
        self.do(self.server.api.bind("default", name, {"target": {"name": node}}, Call()))
        state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        statuses = [
            {"name": each, "ready": True, "restartCount": 0, "state": state, "image": "busybox", "imageID": ""}
            for each in containers
        ]
        ready = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Initialized", "Ready")]
        status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": ready, "containerStatuses": statuses}
        return self.patch("pods", name, {"status": status}, "status")
