"""A scheduler extender on a real port, as scripted by a test."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from lamina_lab.api.in_process import InProcess
from lamina_lab.kubernetes import objects
from lamina_lab.scheduler.extender import ExtenderConfig, ManagedResource

GPU = "nvidia.com/gpu"

Rule = Callable[[dict[str, Any], str], str]
"""Why a pod cannot go to a node; empty where it can."""


class FakeExtender:
    """`rule` decides the filter, `scores` the order, `victims` who goes instead, `before_bind` may refuse;
    `failing` holds other answers."""

    def __init__(self, kube: InProcess | None = None) -> None:
        self.rule: Rule = lambda pod, node: ""
        self.victims: dict[str, list[str]] = {}
        self.scores: dict[str, int] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.failing: dict[str, Any] = {}
        self.status: dict[str, int] = {}
        self.before_bind: Callable[[dict[str, Any]], Awaitable[str]] | None = None
        self._kube = kube
        self._server: TestServer | None = None
        self.url = ""

    async def start(self, port: int | None = None) -> None:
        app = web.Application()
        app.router.add_post("/filter", self._filter)
        app.router.add_post("/prioritize", self._prioritize)
        app.router.add_post("/preempt", self._preempt)
        app.router.add_post("/bind", self._bind)
        self._server = TestServer(app, port=port)
        await self._server.start_server()
        self.url = f"http://127.0.0.1:{self._server.port}"

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.port or 0)

    async def stop(self) -> None:
        if self._server:
            await self._server.close()

    def config(self, **fields: Any) -> ExtenderConfig:
        return ExtenderConfig(**{"url": self.url, "managed": (ManagedResource(GPU),)} | fields)

    def asked(self, verb: str) -> list[dict[str, Any]]:
        return [body for called, body in self.calls if called == verb]

    async def _note(self, request: web.Request, verb: str) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(await request.read())
        self.calls.append((verb, body))
        return body

    def _answer(self, verb: str, body: Any) -> web.Response:
        return web.json_response(self.failing.get(verb, body), status=self.status.get(verb, 200))

    async def _filter(self, request: web.Request) -> web.Response:
        body = await self._note(request, "filter")
        why = {node: self.rule(body["Pod"], node) for node in body["NodeNames"]}
        fit = [node for node, reason in why.items() if not reason]
        failed = {node: reason for node, reason in why.items() if reason}
        return self._answer("filter", {"nodenames": fit, "failedNodes": failed, "error": ""})

    async def _prioritize(self, request: web.Request) -> web.Response:
        body = await self._note(request, "prioritize")
        scores = [{"host": node, "score": self.scores.get(node, 0)} for node in body["NodeNames"]]
        return self._answer("prioritize", scores)

    async def _preempt(self, request: web.Request) -> web.Response:
        body = await self._note(request, "preempt")
        named = body["NodeNameToMetaVictims"]
        wanted = {node: [each["UID"] for each in victims["Pods"]] for node, victims in named.items()} | self.victims
        answer = {node: {"pods": [{"uid": uid} for uid in uids]} for node, uids in wanted.items() if uids}
        return self._answer("preempt", {"nodeNameToMetaVictims": answer})

    async def _bind(self, request: web.Request) -> web.Response:
        body = await self._note(request, "bind")
        refusal = await self.before_bind(body) if self.before_bind else ""
        if refusal:
            return self._answer("bind", {"error": refusal})
        if "bind" not in self.failing and self._kube:
            where = {"namespace": body["PodNamespace"], "uid": body["PodUID"], "node": body["Node"]}
            await self._kube.bind(body["PodName"], **where)
        return self._answer("bind", {"error": ""})


def on_node(pods: list[dict[str, Any]], node: str) -> int:
    return sum(objects.spec(pod).get("nodeName") == node for pod in pods)
