"""The scheduler's extender over HTTP: filter, prioritize, preempt and bind as kube-scheduler asks them.

Errors are answered inside the protocol, as `error` with status 200: kube-scheduler shows that text on the pod, while
any other status is shown as a number. A replica that may not answer ends the connection with its answer, so that the
next question reaches the one that leads.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct
from msgspec.structs import FieldInfo
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from lamina.control.background import Background
from lamina.control.binding import BindArgs, Binder
from lamina.control.decisions import Decisions, Filtered
from lamina.control.gangs import Gangs
from lamina.control.metrics import Metrics
from lamina.control.preemption import PreemptArgs, Preemption
from lamina.control.readiness import Readiness
from lamina.errors import Outside
from lamina.ports.kube import PODS, EventRecorder, Object

_Args = TypeVar("_Args", bound=Struct)
_LARGEST_BODY = 512 * 1024 * 1024
"""Bytes; a scheduler without node cache sends every node in full."""
_NOT_READY = "not_ready"


class ExtenderArgs(Struct, frozen=True):
    """`ExtenderArgs` of kube-scheduler: either whole nodes or their names."""

    pod: Object
    nodes: Object | None = None
    nodenames: list[str] | None = None

    @property
    def names(self) -> list[str]:
        if self.nodes is not None:
            return [node["metadata"]["name"] for node in self.nodes.get("items") or ()]
        return self.nodenames or []


class HostPriority(Struct, frozen=True, gc=False):
    """`HostPriority` of kube-scheduler."""

    host: str
    score: int


class ExtenderService:
    """The routes, over decisions and binder. Nothing is decided while the replica is not ready."""

    def __init__(
        self,
        decisions: Decisions,
        binder: Binder,
        preemption: Preemption,
        gangs: Gangs,
        readiness: Readiness,
        metrics: Metrics,
        events: EventRecorder,
        background: Background,
    ) -> None:
        self._decisions = decisions
        self._binder = binder
        self._preemption = preemption
        self._gangs = gangs
        self._readiness = readiness
        self._metrics = metrics
        self._events = events
        self._background = background

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.router.add_post("/filter", self._measured("filter", self._filter))
        app.router.add_post("/prioritize", self._measured("prioritize", self._prioritize))
        app.router.add_post("/preempt", self._measured("preempt", self._preempt))
        app.router.add_post("/bind", self._measured("bind", self._bind))
        self._add_looking(app)
        return app

    def looking(self) -> web.Application:
        """What probes and Prometheus ask, without anything that decides: for an address that more may reach."""
        app = web.Application()
        self._add_looking(app)
        return app

    def _add_looking(self, app: web.Application) -> None:
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/warmz", self._warmz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._show_metrics)

    def _measured(
        self, verb: str, answer: Callable[[bytes], Awaitable[tuple[Any, str]]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """The handler that decodes, answers and counts; `answer` returns what to send and the outcome's name."""

        async def handle(request: web.Request) -> web.Response:
            body = await request.read()
            began = asyncio.get_running_loop().time()
            try:
                sent, outcome = await answer(body)
            except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
                self._metrics.decisions.labels(verb, "malformed").inc()
                return web.Response(status=400, text=f"the body is not what kube-scheduler sends to {verb}: {error}")
            self._metrics.decisions.labels(verb, outcome).inc()
            self._metrics.seconds.labels(verb).observe(asyncio.get_running_loop().time() - began)
            response = web.Response(body=msgspec.json.encode(sent), content_type="application/json")
            if outcome == _NOT_READY:
                # The scheduler keeps its connection, and a Service chooses a replica once for each.
                response.force_close()
            return response

        return handle

    async def _filter(self, body: bytes) -> tuple[Any, str]:
        args = _decoded(body, ExtenderArgs)
        if not self._readiness:
            return {"error": self._readiness.lacking}, _NOT_READY
        try:
            filtered = await self._gangs.narrow(args.pod, self._decisions.filter(args.pod, args.names))
        except Outside as error:
            return {"error": str(error)}, "refused"
        if filtered.summary and args.pod["metadata"].get("name"):
            record = self._events.record(PODS, args.pod, "NoGpuFits", filtered.summary, warning=True)
            self._background.start(record)
        return _filter_result(args, filtered), "fits" if filtered.fitting else "fits_nowhere"

    async def _prioritize(self, body: bytes) -> tuple[Any, str]:
        args = _decoded(body, ExtenderArgs)
        ready = bool(self._readiness)
        if ready:
            await self._decisions.prepare(args.pod)
        scores = self._decisions.scores(args.pod, args.names) if ready else dict.fromkeys(args.names, 0)
        return list(map(HostPriority, scores, scores.values())), "scored" if ready else _NOT_READY

    async def _preempt(self, body: bytes) -> tuple[Any, str]:
        args = _decoded(body, PreemptArgs)
        if not self._readiness:
            return {"nodeNameToMetaVictims": {}}, _NOT_READY
        answer = await self._preemption.preempt(args)
        return answer, "helps" if answer["nodeNameToMetaVictims"] else "helps_nowhere"

    async def _bind(self, body: bytes) -> tuple[Any, str]:
        args = _decoded(body, BindArgs)
        if not self._readiness:
            return {"error": self._readiness.lacking}, _NOT_READY
        error = await self._gangs.wait(args)
        if not error:
            error = await self._binder.bind(args)
            self._gangs.keep(args)
        return {"error": error}, "refused" if error else "bound"

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _warmz(self, request: web.Request) -> web.Response:
        """Whether this replica could lead: a standby that has read the cluster is as good as the leader."""
        if self._readiness.warm:
            return web.Response(text="ok")
        return web.Response(status=503, text=self._readiness.lacking)

    async def _readyz(self, request: web.Request) -> web.Response:
        if self._readiness:
            return web.Response(text="ok")
        return web.Response(status=503, text=self._readiness.lacking)

    async def _show_metrics(self, request: web.Request) -> web.Response:
        headers = {"Content-Type": CONTENT_TYPE_LATEST}
        return web.Response(body=generate_latest(self._metrics.registry), headers=headers)


def _decoded(body: bytes, kind: type[_Args]) -> _Args:
    """Arguments, whatever the case of their fields' names.

    kube-scheduler writes "Pod", "NodeNames", "PodUID", as its types carry no JSON names; older ones and Go programs in
    between write others, and Go reads them all.
    """
    parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    given = {name.lower(): value for name, value in parts.items()}
    fields = {field.name: field for field in _fields(kind) if field.encode_name in given}
    return kind(
        **{name: msgspec.json.decode(given[field.encode_name], type=field.type) for name, field in fields.items()}
    )


@cache
def _fields(kind: type[Struct]) -> tuple[FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _filter_result(args: ExtenderArgs, filtered: Filtered) -> Object:
    """`ExtenderFilterResult`, with whole nodes for who sent whole nodes.

    kube-scheduler 1.20 knows only `failedNodes`; newer ones go by the other list where a node is in both.
    """
    result: Object = {
        "failedNodes": {**filtered.unresolvable, **filtered.failed},
        "failedAndUnresolvableNodes": filtered.unresolvable,
        "error": filtered.error,
    }
    if args.nodes is None:
        return result | {"nodenames": filtered.fitting}
    fitting = set(filtered.fitting)
    items = [node for node in args.nodes.get("items") or () if node["metadata"]["name"] in fitting]
    return result | {"nodes": {**args.nodes, "items": items}}
