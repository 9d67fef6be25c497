"""Logs and exec, proxied to the kubelet of the pod's node."""

import asyncio
import contextlib
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from lamina.ports.kube import Object
from lamina.ports.kube.moments import seconds_of
from lamina_lab.api.http.kubelets import ExecOptions, ExecSession, KubeletError, Kubelets, LogOptions
from lamina_lab.api.http.requests import ResourcePath, flag, number
from lamina_lab.api.storage.verbs import Api
from lamina_lab.kubernetes import exec_channels
from lamina_lab.kubernetes.errors import ApiError, bad_request

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")


def choose_container(pod: Object, asked: str) -> str:
    """The container that a request means. Raises 400 if it does not exist or is ambiguous."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    regular = [container["name"] for container in spec.get("containers") or []]
    first = [init_container["name"] for init_container in spec.get("initContainers") or []]
    added = [container["name"] for container in spec.get("ephemeralContainers") or []]
    if asked:
        if asked not in regular + first + added:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(regular) == 1:
        return str(regular[0])
    more = f" or one of the init containers: [{' '.join(first)}]" if first else ""
    raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(regular)}]{more}")


def _node(pod: Object) -> str:
    node = pod["spec"].get("nodeName")
    if not node:
        raise bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
    return str(node)


def _status_of(pod: Object, container: str) -> Object:
    status = pod.get("status") or {}
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for status_entry in status.get(field) or []:
            if status_entry.get("name") == container:
                found: Object = status_entry
                return found
    return {}


def _check_log(pod: Object, container: str, previous: bool) -> None:
    """A log exists once the container has run. Raises 400 with Kubernetes' message."""
    status, name = _status_of(pod, container), pod["metadata"]["name"]
    state, last = status.get("state") or {}, status.get("lastState") or {}
    if previous:
        if not last.get("terminated"):
            raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        return
    waiting = state.get("waiting")
    if (waiting or not state) and not last.get("terminated"):
        reason = (waiting or {}).get("reason", "ContainerCreating")
        raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')


async def logs(api: Api, nodes: Kubelets, address: ResourcePath, request: web.Request) -> web.StreamResponse:
    query = request.query
    pod = api.get(api.catalog.named("pods"), address.namespace, address.name).obj
    container = choose_container(pod, query.get("container", ""))
    node = _node(pod)
    options = LogOptions(
        follow=flag(query, "follow"),
        tail=number(query, "tailLines"),
        previous=flag(query, "previous"),
        timestamps=flag(query, "timestamps"),
        since_seconds=_since(query.get("sinceTime", ""), number(query, "sinceSeconds"), api.store.clock()),
    )
    _check_log(pod, container, options.previous)
    left = number(query, "limitBytes")
    try:
        chunks = await nodes.logs(node, address.namespace, address.name, container, options)
    except KubeletError as error:
        raise _refusal(error) from error
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    await response.prepare(request)
    with contextlib.suppress(ConnectionResetError):
        async for chunk in chunks:
            await response.write(chunk if left is None else chunk[:left])
            left = None if left is None else left - len(chunk)
            if left is not None and left <= 0:
                break
    return response


def _since(moment: str, seconds: int | None, now: float) -> int | None:
    if not moment:
        return seconds
    then = seconds_of(moment)
    if then is None:
        raise bad_request(f"sinceTime must be an RFC 3339 timestamp, found {moment!r}")
    return max(1, int(now - then) + 1)


def _refusal(error: KubeletError) -> ApiError:
    reasons = {400: "BadRequest", 404: "NotFound"}
    return ApiError(error.status, reasons.get(error.status, "InternalError"), str(error))


async def execute(api: Api, nodes: Kubelets, address: ResourcePath, request: web.Request) -> web.StreamResponse:
    """Run a command in a container, over the WebSocket form of Kubernetes' remote command protocol."""
    query = request.query
    pod = api.get(api.catalog.named("pods"), address.namespace, address.name).obj
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        phase = pod["status"]["phase"]
        raise bad_request(f"cannot exec into a container in a completed pod; current phase is {phase}")
    container = choose_container(pod, query.get("container", ""))
    node, command = _node(pod), tuple(query.getall("command", []))
    if not command:
        raise bad_request("you must specify at least 1 command for the container")
    if "running" not in (_status_of(pod, container).get("state") or {}):
        raise ApiError(500, "InternalError", f'unable to upgrade connection: container not found ("{container}")')
    socket = web.WebSocketResponse(protocols=PROTOCOLS, max_msg_size=0)
    if not socket.can_prepare(request).ok:
        raise bad_request("unable to upgrade: exec is served over WebSocket alone")
    options = ExecOptions(command, tty=flag(query, "tty"), stdin=flag(query, "stdin"))
    try:
        session = await nodes.exec(node, address.namespace, address.name, container, options)
    except KubeletError as error:
        raise _refusal(error) from error
    try:
        await socket.prepare(request)
        await _splice(socket, session)
    finally:
        await session.close()
        await socket.close()
    return socket


async def _splice(socket: web.WebSocketResponse, session: ExecSession) -> None:
    upward = asyncio.create_task(_to_kubelet(socket, session))
    ended = False
    try:
        async for channel, data in session.frames():
            ended = ended or channel == exec_channels.ERROR
            with contextlib.suppress(ConnectionResetError):
                await socket.send_bytes(bytes((channel,)) + data)
        if not ended:
            with contextlib.suppress(ConnectionResetError):
                await socket.send_bytes(bytes((exec_channels.ERROR,)) + msgspec.json.encode(_lost()))
    finally:
        upward.cancel()


async def _to_kubelet(socket: web.WebSocketResponse, session: ExecSession) -> None:
    """Forward what the client sends; disconnect from the kubelet when the client disconnects."""
    async for message in socket:
        if message.type is WSMsgType.BINARY and message.data:
            data: bytes = message.data
            await session.send(data[0], data[1:])
    await session.close()


def _lost() -> dict[str, Any]:
    message = "the kubelet ended the session without an exit code"
    return {"metadata": {}, "status": "Failure", "reason": "InternalError", "message": message, "code": 500}
