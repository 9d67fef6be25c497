"""Admission over HTTPS: AdmissionReview in, AdmissionReview out. What the API server cannot parse is answered 400."""

import asyncio

import msgspec
from aiohttp import web

from lamina.control.admission import (
    ALLOWED,
    AdmissionReview,
    Asked,
    Verdict,
    answer,
    is_new_pod,
    is_workload,
    review,
    review_template,
)
from lamina.control.configuration import Configuration
from lamina.control.ledger import Ledger
from lamina.control.metrics import Metrics
from lamina.control.quotas import Quotas
from lamina.control.watching import Watching
from lamina.control.webhook_configuration import PATH

_LARGEST_BODY = 16 * 1024 * 1024
"""Bytes; an object has at most 3 MiB, and a review may carry two."""


class AdmissionService:
    """The route, over the pure review."""

    def __init__(
        self, configuration: Configuration, quotas: Quotas, ledger: Ledger, watching: Watching, metrics: Metrics
    ) -> None:
        self._configuration = configuration
        self._quotas = quotas
        self._ledger = ledger
        self._watching = watching
        self._metrics = metrics

    def application(self) -> web.Application:
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.router.add_post(PATH, self._mutate)
        app.router.add_get("/healthz", self._healthz)
        return app

    async def _mutate(self, request: web.Request) -> web.Response:
        body = await request.read()
        began = asyncio.get_running_loop().time()
        try:
            asked = msgspec.json.decode(body, type=AdmissionReview)
            verdict = self._verdict(asked.request)
        except msgspec.DecodeError as error:
            return web.Response(status=400, text=f"the body is not an AdmissionReview of admission.k8s.io/v1: {error}")
        self._metrics.decisions.labels("admit", "allowed" if verdict.allowed else "refused").inc()
        self._metrics.seconds.labels("admit").observe(asyncio.get_running_loop().time() - began)
        return web.Response(body=msgspec.json.encode(answer(asked, verdict)), content_type="application/json")

    def _verdict(self, asked: Asked) -> Verdict:
        config = self._configuration.value
        if is_workload(asked) and asked.object is not None:
            return review_template(asked.object, config)
        if not is_new_pod(asked) or asked.object is None:
            return ALLOWED
        quotas = self._quotas.of(asked.namespace, config)
        ready = self._watching.rebuilt.is_set()
        return review(
            asked.object,
            config,
            quotas,
            lambda: self._ledger.taken_in(asked.namespace),
            ready=ready,
            offered=self._ledger.offered_plainly,
        )

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")
