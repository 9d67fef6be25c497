"""Admission over HTTPS: AdmissionReview in, AdmissionReview out. A body that cannot be decoded gets status 400.

A defect gets status 500, so that the API server does what the policy of the webhook says.

Any pod of the cluster can send requests, so all that one can cost is bounded: the size of its body, how many values
that has, how long it may take to arrive, and how many large ones are in memory at a time.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
from aiohttp import web

from lamina.admission.connections import Connections
from lamina.admission.review import (
    ALLOWED,
    AdmissionRequest,
    AdmissionReview,
    Demand,
    Verdict,
    answer,
    decode_review,
    is_new_pod,
    is_workload,
    new_pod,
    refused,
    review,
    review_claims,
    review_template,
    review_visibility,
)
from lamina.admission.webhook_configuration import CLAIMS_PATH, HIDING_PATH, PATH
from lamina.config_source.live import LiveConfiguration
from lamina.errors import BadInput
from lamina.ports.clock import Clock, within
from lamina.ports.failures import Failures, malformed
from lamina.ports.set_aside import SetAside

MAX_BODY = 6 * 1024 * 1024
"""Bytes. An API server takes requests of at most 3 MiB, and the review of a change carries two objects."""
LARGE_BODY = 64 * 1024
MAX_LARGE_BODIES = 4
"""At a time; others wait."""
MAX_VALUES = 200_000
"""A few bytes can become an object, so commas and opening brackets are counted before a body is decoded."""
MAX_NAMESPACES = 10_000
"""Of so many it is known that they have had their notice. The one that came up least recently is forgotten first."""
READ_S = 5.0
"""Seconds in which a body must have arrived, with the time that it waits for others."""

Ask = Callable[[Demand], str]
"""Returns why the cluster does not admit a demand, or nothing."""
Decide = Callable[[AdmissionRequest], Awaitable[Verdict]]
Report = Callable[[bool, float], None]
"""Gets whether a review allowed its object, and how many seconds it took."""


class Notices:
    """Which namespaces have had the warning that explains what holds for all of their pods. A process that starts
    again gives it again."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()

    def applied(self, verdict: Verdict, namespace: str) -> Verdict:
        """The verdict, with its notice among the warnings if the namespace has not had it."""
        if not verdict.notice or not verdict.allowed:
            return verdict
        known = namespace in self._known
        self._known[namespace] = None
        self._known.move_to_end(namespace)
        if known:
            return verdict
        if len(self._known) > MAX_NAMESPACES:
            self._known.popitem(last=False)
        notice = f"{verdict.notice} (said once for namespace {namespace})"
        return msgspec.structs.replace(verdict, warnings=(*verdict.warnings, notice))


class AdmissionService:
    """The HTTP routes around the pure review."""

    def __init__(
        self,
        configuration: LiveConfiguration,
        ask: Ask,
        report: Report,
        connections: Connections,
        clock: Clock,
        set_aside: SetAside,
    ) -> None:
        self._configuration = configuration
        self._connections = connections
        self._ask = ask
        self._report = report
        self._clock = clock
        self._failures = Failures(set_aside)
        self._notices = Notices()
        self._turns = asyncio.Semaphore(MAX_LARGE_BODIES)

    def application(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_post(PATH, self._failures.answering("admit", partial(self._mutate, self._verdict)))
        app.router.add_post(HIDING_PATH, self._failures.answering("hide", partial(self._mutate, self._visibility)))
        app.router.add_post(CLAIMS_PATH, self._failures.answering("gate", partial(self._mutate, self._gate)))
        app.router.add_get("/healthz", self._healthz)
        return app

    async def _mutate(self, decide: Decide, request: web.Request) -> web.Response:
        size = request.content_length
        if size is None:
            return _refusal(411, "the request has no Content-Length")
        if size > MAX_BODY:
            return _refusal(413, f"the body has {size} bytes; at most {MAX_BODY} are read")
        try:
            admission_review = await within(self._clock, READ_S, self._read(request, size))
        except TimeoutError:
            return _refusal(408, f"the body has not arrived within {READ_S:g} s")
        except BadInput as problem:
            return malformed("an AdmissionReview of admission.k8s.io/v1", problem)
        with self._connections.kept(request.protocol):
            return await self._answer(decide, admission_review)

    async def _read(self, request: web.Request, size: int) -> AdmissionReview:
        """The review in the body, which is no longer in memory afterwards. Raises BadInput."""
        async with self._turns if size > LARGE_BODY else contextlib.nullcontext():
            return _decode(await request.read())

    async def _answer(self, decide: Decide, admission_review: AdmissionReview) -> web.Response:
        started, request = self._clock.monotonic(), admission_review.request
        verdict = self._notices.applied(await decide(request), request.namespace)
        self._report(verdict.allowed, self._clock.monotonic() - started)
        message = msgspec.json.encode(answer(admission_review, verdict))
        return web.Response(body=message, content_type="application/json")

    async def _verdict(self, request: AdmissionRequest) -> Verdict:
        if is_workload(request) and request.object is not None:
            return review_template(request.object, request.namespace, self._configuration.value)
        if not is_new_pod(request) or request.object is None:
            return ALLOWED
        try:
            pod = new_pod(request)
        except BadInput as problem:
            return refused(str(problem))
        verdict, demand = review(pod, self._configuration.value)
        refusal = self._ask(demand) if demand is not None else ""
        return refused(refusal) if refusal else verdict

    async def _visibility(self, request: AdmissionRequest) -> Verdict:
        return review_visibility(request, self._configuration.value)

    async def _gate(self, request: AdmissionRequest) -> Verdict:
        return review_claims(request)

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")


def _decode(body: bytes) -> AdmissionReview:
    """The review in a body. Raises BadInput."""
    if (values := sum(map(body.count, (b",", b"[", b"{")))) > MAX_VALUES:
        raise BadInput(f"it has about {values} values; at most {MAX_VALUES} are read")
    return decode_review(body)


def _refusal(status: int, reason: str) -> web.Response:
    """An answer after which the connection is closed, because the rest of the request may still come."""
    response = web.Response(status=status, text=reason)
    response.force_close()
    return response
