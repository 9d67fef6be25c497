"""The kubelet's HTTP server on a Unix socket: logs and exec for the API server (lamina_lab.api.http.kubelets)."""

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import ClientConnectionResetError, web

from lamina_lab.kubelet.containers.instances import RunningContainer, Runtime
from lamina_lab.kubelet.model.records import Container, Waiting
from lamina_lab.kubelet.pods.worker import PodWorker
from lamina_lab.kubelet.serving import logs
from lamina_lab.kubelet.serving.exec_sessions import end_session, failure, run_session

Find = Callable[[str, str], PodWorker | None]


class KubeletServer:
    """An asynchronous context manager."""

    def __init__(self, socket: Path, find: Find, runtime: Runtime, now: Callable[[], float]) -> None:
        self._socket = socket
        self._find = find
        self._runtime = runtime
        self._now = now
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> "KubeletServer":
        app = web.Application()
        app.router.add_get("/logs/{namespace}/{pod}/{container}", self._logs)
        app.router.add_get("/exec/{namespace}/{pod}/{container}", self._exec)
        self._runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        self._socket.unlink(missing_ok=True)
        await web.UnixSite(self._runner, str(self._socket)).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        self._socket.unlink(missing_ok=True)

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        worker, container = self._named(request)
        path = self._log_of(worker, container, _flag(request, "previous"))
        seconds = _number(request, "sinceSeconds")
        since = None if seconds is None else datetime.fromtimestamp(self._now() - seconds, UTC)
        wanted = logs.LogRequest(
            follow=_flag(request, "follow") and not _flag(request, "previous"),
            tail=_number(request, "tail"),
            timestamps=_flag(request, "timestamps"),
            since=None if since is None else since.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        )
        instance = worker.instances.get(container.name)
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(request)
        with contextlib.suppress(ClientConnectionResetError, ConnectionError):  # the client has disconnected
            async for chunk in logs.read(path, wanted, lambda: _still_running(worker, container, instance)):
                await answer.write(chunk)
            await answer.write_eof()
        return answer

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        worker, container = self._named(request)
        command = request.query.getall("command", [])
        if not command:
            raise _refused(web.HTTPBadRequest, "you must specify at least 1 command for the container")
        instance = worker.instances.get(container.name)
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        if instance is None or not container.running:
            # Sent within the session: a WebSocket client sees only the status code of a refusal.
            await end_session(socket, failure(f'container not found ("{container.name}")'))
            return socket
        await run_session(
            socket, self._runtime, instance, command, tty=_flag(request, "tty"), stdin=_flag(request, "stdin")
        )
        return socket

    def _named(self, request: web.Request) -> tuple[PodWorker, Container]:
        names = request.match_info
        worker = self._find(names["namespace"], names["pod"])
        if worker is None:
            raise _refused(web.HTTPNotFound, f'pod "{names["pod"]}" not found')
        container = worker.container(names["container"])
        if container is None:
            raise _refused(web.HTTPNotFound, f'container {names["container"]} is not in pod "{names["pod"]}"')
        return worker, container

    def _log_of(self, worker: PodWorker, container: Container, previous: bool) -> Path:
        name, pod = container.name, worker.pod["metadata"]["name"]
        number = container.restarts - (1 if previous else 0)
        path = worker.log(name, number)
        if number >= 0 and path.exists():
            return path
        if previous:
            raise _refused(web.HTTPBadRequest, f'previous terminated container "{name}" in pod "{pod}" not found')
        state = container.state
        reason = state.reason if isinstance(state, Waiting) else "its log was removed"
        raise _refused(web.HTTPBadRequest, f'container "{name}" in pod "{pod}" is waiting to start: {reason}')


def _still_running(worker: PodWorker, container: Container, instance: RunningContainer | None) -> bool:
    """Whether `instance` of the container is still running."""
    return instance is not None and worker.instances.get(container.name) is instance


def _refused(kind: type[web.HTTPException], message: str) -> web.HTTPException:
    return kind(text=message)


def _flag(request: web.Request, name: str) -> bool:
    return request.query.get(name, "").lower() in ("true", "1")


def _number(request: web.Request, name: str) -> int | None:
    text = request.query.get(name)
    if text is None:
        return None
    if not text.isdigit():
        raise _refused(web.HTTPBadRequest, f"{name} is {text!r}; must be a whole number")
    return int(text)
