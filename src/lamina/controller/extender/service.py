"""The scheduler extender over HTTP: filter, prioritize, preempt and bind.

Errors are answered inside the protocol, as `error` with status 200: kube-scheduler shows that text on the pod, while it
shows any other status as a number. A replica that may not answer closes the connection after its answer, so that the
next request reaches the replica that leads.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from lamina.controller.binding.bind_args import BindArgs
from lamina.controller.binding.binder import Binder
from lamina.controller.context import Context
from lamina.controller.eviction.preemption import Preemption
from lamina.controller.eviction.victims import PodVictims
from lamina.controller.extender.protocol import (
    MAX_BODY,
    Arguments,
    Decoder,
    ExtenderArgs,
    PreemptArgs,
    filter_result,
    read_body,
)
from lamina.controller.gangs.coordinator import GangCoordinator
from lamina.controller.leadership.readiness import Readiness
from lamina.controller.metrics import Metrics
from lamina.controller.scheduling.assumed_pods import AssumedPods
from lamina.controller.scheduling.autoscaler_nodes import AutoscalerNodes
from lamina.controller.scheduling.best_node import BestNode
from lamina.controller.scheduling.nominated_pods import NominatedPods
from lamina.controller.scheduling.scheduler import FilterResult, Scheduler
from lamina.controller.scheduling.scores import NodeScores
from lamina.controller.tasks import BackgroundTasks
from lamina.core.component_names import FILTER_TO_BEST, PRIORITIZE_WITHOUT_GPUS
from lamina.errors import BadInput, Outside
from lamina.ledger.pods import ParsedPod
from lamina.ports.caller_reviews import CallerReviews
from lamina.ports.failures import Failures, malformed
from lamina.ports.kube import PODS, EventRecorder
from lamina.ports.metrics import Handler, for_allowed_callers

_NOT_READY = "not_ready"
_VERBS_WITH_ERROR = ("filter", "bind")
"""Verbs whose answer has a field for an error."""

_Args = TypeVar("_Args", bound=Arguments)
Choice = Callable[[ParsedPod, FilterResult], FilterResult]


@dataclass(frozen=True)
class Verbs:
    """The parts that answer the extender's verbs."""

    scheduler: Scheduler
    gangs: GangCoordinator
    victims: PodVictims
    nominated: NominatedPods
    preemption: Preemption | None
    """None where only kube-scheduler evicts."""
    binder: Binder
    assumed: AssumedPods
    autoscaler_nodes: AutoscalerNodes
    best_node: BestNode


class ExtenderService:
    """The HTTP routes. Nothing is decided while the replica is not ready."""

    def __init__(
        self,
        context: Context,
        verbs: Verbs,
        readiness: Readiness,
        metrics: Metrics,
        events: EventRecorder,
        background: BackgroundTasks,
        reviews: CallerReviews | None = None,
    ) -> None:
        """With `reviews`, only callers that these allow may read metrics."""
        self._context = context
        self._verbs = verbs
        self._readiness = readiness
        self._metrics = metrics
        self._events = events
        self._background = background
        self._reviews = reviews
        self._decoder = Decoder()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY)
        self._add_verb(app, "filter", ExtenderArgs, self._filter)
        self._add_verb(app, "filter", ExtenderArgs, self._filter_to_best, path=FILTER_TO_BEST)
        self._add_verb(app, "prioritize", ExtenderArgs, self._prioritize)
        self._add_verb(app, PRIORITIZE_WITHOUT_GPUS, ExtenderArgs, self._prioritize_without_gpus)
        self._add_verb(app, "preempt", PreemptArgs, self._preempt)
        self._add_verb(app, "bind", BindArgs, self._bind)
        self._add_probes(app)
        return app

    def probes_application(self) -> web.Application:
        """Probes and metrics without the verbs, for an address that more clients may reach."""
        app = web.Application()
        self._add_probes(app)
        return app

    def _add_probes(self, app: web.Application) -> None:
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/warmz", self._warmz)
        app.router.add_get("/readyz", self._readyz)
        shown: Handler = self._show_metrics
        app.router.add_get("/metrics", for_allowed_callers(shown, self._reviews) if self._reviews else shown)

    def _add_verb(
        self,
        app: web.Application,
        verb: str,
        kind: type[_Args],
        answer: Callable[[_Args], Awaitable[tuple[Any, str]]],
        path: str = "",
    ) -> None:
        """A handler that decodes, answers and counts, at the path of the verb or at `path`.

        `answer` returns the message to send and the outcome's name.
        A body that cannot be decoded is the caller's mistake; all that fails later is not.
        """
        failures = Failures(self._context.set_aside)

        async def handle(request: web.Request) -> web.Response:
            try:
                body = await read_body(request)
            except BadInput as problem:
                self._metrics.decisions.labels(verb, "malformed").inc()
                return _closing(web.json_response({"error": str(problem)}))
            started = self._context.now()
            try:
                args = self._decoder.decode(body, kind)
            except BadInput as error:
                self._metrics.decisions.labels(verb, "malformed").inc()
                return malformed(f"what kube-scheduler sends to {verb}", error)
            try:
                message, outcome = await answer(args)
            except Exception as error:
                if verb not in _VERBS_WITH_ERROR:
                    self._metrics.decisions.labels(verb, "failed").inc()
                    raise
                message, outcome = {"error": failures.sentence(verb, error)}, "failed"
            self._metrics.decisions.labels(verb, outcome).inc()
            self._metrics.seconds.labels(verb).observe(self._context.now() - started)
            response = web.Response(body=msgspec.json.encode(message), content_type="application/json")
            # kube-scheduler keeps its connection open, and a Service chooses a replica once per connection.
            return _closing(response) if outcome == _NOT_READY else response

        app.router.add_post(f"/{path or verb}", failures.answering(verb, handle))

    async def _filter(self, args: ExtenderArgs) -> tuple[Any, str]:
        if not self._readiness:
            return {"error": self._readiness.reason}, _NOT_READY
        return await self._filter_with(args, self._context.parse(args.pod), lambda pod, result: result)

    async def _filter_to_best(self, args: ExtenderArgs) -> tuple[Any, str]:
        """Whole nodes are sent by autoscalers, which ask where the pod fits, not where it goes."""
        if not self._readiness or args.nodes is not None:
            return await self._filter(args)
        pod = self._context.parse(args.pod)
        await self._verbs.scheduler.warm_up(pod)
        return await self._filter_with(args, pod, self._verbs.best_node.choose)

    async def _filter_with(self, args: ExtenderArgs, pod: ParsedPod, choose: Choice) -> tuple[Any, str]:
        templates = self._verbs.autoscaler_nodes.among(args.whole_nodes)
        existing = [name for name in args.names if name not in templates] if templates else args.names
        if templates and not existing:  # an autoscaler simulates: nothing is planned, recorded or retried
            result = self._verbs.autoscaler_nodes.filter(pod, templates)
            return filter_result(args, result, self._decoder.lists), "fits" if result.fitting else "fits_nowhere"
        self._verbs.assumed.withdraw(pod.uid)
        try:
            result = self._verbs.nominated.restrict(pod, self._verbs.scheduler.filter(pod, existing))
            result = choose(pod, await self._verbs.gangs.restrict(pod, result))
        except Outside as error:
            return {"error": str(error)}, "refused"
        if templates:
            result = self._verbs.autoscaler_nodes.add(result, pod, templates)
        elif len(result.fitting) == 1:
            self._verbs.assumed.assume(pod, result.fitting[0])  # then kube-scheduler requests no scores
        self._context.pending.observe_try(pod, result.cause if result.summary else "", self._context.now())
        if self._verbs.preemption is not None:
            self._verbs.preemption.observe(pod, result)
        if result.summary and pod.name:
            self._background.start(self._events.record(PODS, pod.obj, "NoGpuFits", result.summary, warning=True))
        return filter_result(args, result, self._decoder.lists), "fits" if result.fitting else "fits_nowhere"

    async def _prioritize(self, args: ExtenderArgs) -> tuple[Any, str]:
        if self._readiness:
            pod = self._context.parse(args.pod)
            await self._verbs.scheduler.warm_up(pod)
            self._verbs.assumed.withdraw(pod.uid)
            scores, outcome = self._verbs.scheduler.scores(pod, args.names), "scored"
            if scores.nodes:
                self._verbs.assumed.assume(pod, scores.best)
        else:
            scores, outcome = NodeScores.zero(args.names), _NOT_READY
        return self._decoder.lists.write_scores(*scores), outcome

    async def _prioritize_without_gpus(self, args: ExtenderArgs) -> tuple[Any, str]:
        """No preference where the pod requests a GPU: `prioritize` answers about it."""
        if not self._readiness:
            return [], _NOT_READY
        pod = self._context.parse(args.pod)
        if pod.request is not None or pod.problem:
            return [], "requests_gpus"
        scheduler = self._verbs.scheduler
        await scheduler.packing.warm_up(None, pod.host_size)
        self._verbs.assumed.withdraw(pod.uid)
        scores = scheduler.scores_without_gpus(pod, args.names)
        if scores.nodes:
            self._verbs.assumed.assume(pod, scores.best)
        return self._decoder.lists.write_scores(*scores), "scored"

    async def _preempt(self, args: PreemptArgs) -> tuple[Any, str]:
        if not self._readiness:
            return {"nodeNameToMetaVictims": {}}, _NOT_READY
        answer = await self._verbs.victims.preempt(self._context.parse(args.pod), args.victims)
        return answer, "helps" if answer["nodeNameToMetaVictims"] else "helps_nowhere"

    async def _bind(self, args: BindArgs) -> tuple[Any, str]:
        if not self._readiness:
            return {"error": self._readiness.reason}, _NOT_READY
        self._verbs.assumed.confirm(args.podUID, args.node)
        self._verbs.best_node.observe_bind(args.podUID)
        try:
            error = await self._verbs.gangs.wait(args)
            if not error:
                error = await self._verbs.binder.bind(args)
                self._verbs.gangs.restore_place(args)
        finally:
            self._verbs.assumed.settle(args.podUID)
        return {"error": error}, "refused" if error else "bound"

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _warmz(self, request: web.Request) -> web.Response:
        """Whether this replica could lead: a standby that has read the cluster is as good as the leader."""
        if self._readiness.warm:
            return web.Response(text="ok")
        return web.Response(status=503, text=self._readiness.reason)

    async def _readyz(self, request: web.Request) -> web.Response:
        if self._readiness:
            return web.Response(text="ok")
        return web.Response(status=503, text=self._readiness.reason)

    async def _show_metrics(self, request: web.Request) -> web.Response:
        headers = {"Content-Type": CONTENT_TYPE_LATEST}
        return web.Response(body=generate_latest(self._metrics.registry), headers=headers)


def _closing(response: web.Response) -> web.Response:
    """The response, after which the connection is closed."""
    response.force_close()
    return response
