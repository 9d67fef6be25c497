"""Admission as a running program: connect, read the configuration, serve until a signal, and stop cleanly.

It serves whether or not the controller next to it leads, and no request can delay the scheduler, the Lease or the
watches of the controller. Until it has a valid configuration, a certificate and all inventories, it is not ready.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from lamina.admission.certificate_store import CertificateStore
from lamina.admission.connections import Connections, serve_on
from lamina.admission.native_offers import NativeOffers
from lamina.admission.registration import certificate_names
from lamina.admission.served_certificate import ServedCertificate
from lamina.admission.service import AdmissionService
from lamina.admission.settings import AdmissionSettings
from lamina.admission.webhook_configuration import PATH
from lamina.config_source.initial import ConfigAt, read_initial_config
from lamina.config_source.live import follow_source
from lamina.ports.caller_reviews import CallerReviews
from lamina.ports.certificates import server_context
from lamina.ports.clock import Clock, SystemClock
from lamina.ports.files import Files
from lamina.ports.kube import Kube
from lamina.ports.kube.client import AGAIN_S, connect
from lamina.ports.listener import Address, bind, listening_if_set
from lamina.ports.metrics import Handler, RequestMetrics, for_allowed_callers, metrics_context
from lamina.ports.set_aside import SetAside
from lamina.ports.supervision import keep_running, stop_event

log = logging.getLogger(__name__)


async def run(settings: AdmissionSettings) -> None:
    """Serve until SIGTERM or SIGINT. Raises BadInput and Outside for what prevents the start."""
    kube = await connect(settings.kubeconfig, again_s=AGAIN_S, lamina_namespace=settings.namespace)
    try:
        await serve(kube, SystemClock(), settings, stop_event())
    finally:
        await kube.close()


async def serve(kube: Kube, clock: Clock, settings: AdmissionSettings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set."""
    at = ConfigAt(settings.config, settings.metrics, settings.protect_metrics)
    configuration = await read_initial_config(kube, clock, at, None, stop)
    if configuration is None:
        return
    set_aside = SetAside(log)
    metrics, offers = RequestMetrics(set_aside), NativeOffers(kube, clock, set_aside)
    tls = server_context()
    connections = Connections(tls, clock)
    store = CertificateStore(kube, clock, certificate_names(kube.lamina_namespace, settings.own_host))
    certificate = ServedCertificate(kube, clock, store, tls)

    def report(allowed: bool, seconds: float) -> None:
        metrics.decisions.labels("admit", "allowed" if allowed else "refused").inc()
        metrics.seconds.labels("admit").observe(seconds)

    service = AdmissionService(configuration, offers.refusal, report, connections, clock, set_aside)
    reviews = CallerReviews(kube, clock) if settings.protect_metrics else None
    probes = _probes(metrics, reviews, lambda: certificate.ready.is_set() and offers.synced.is_set())
    protection = metrics_context(clock.wall()) if settings.protect_metrics else None
    with bind("admission", settings.bind) as listener:

        async def serve_webhook() -> None:
            await certificate.ready.wait()
            await serve_on(listener, service.application(), connections)

        loops: dict[str, Callable[[], Awaitable[None]]] = {
            "admission": serve_webhook,
            "configuration": lambda: follow_source(settings.config, kube, clock, configuration, None, set_aside),
            "certificate": certificate.follow,
            "native devices": offers.follow,
        }
        async with (
            listening_if_set("metrics", probes, settings.metrics, protection) as shown,
            asyncio.TaskGroup() as group,
        ):
            tasks = [group.create_task(keep_running(name, loop, clock, set_aside)) for name, loop in loops.items()]
            urls = {"admission": f"https://{Address(settings.bind.host, listener.getsockname()[1])}{PATH}"}
            if shown:
                urls["metrics"] = f"{'http' if protection is None else 'https'}://{shown}"
            if settings.addresses_file is not None:
                Files().write(settings.addresses_file, json.dumps(urls).encode())
            log.info("Listening: %s", ", ".join(f"{name} on {url}" for name, url in urls.items()))
            await stop.wait()
            for task in tasks:
                task.cancel()


def _probes(metrics: RequestMetrics, reviews: CallerReviews | None, ready: Callable[[], bool]) -> web.Application:
    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(request: web.Request) -> web.Response:
        if ready():
            return web.Response(text="ok")
        return web.Response(status=503, text="admission has no certificate, or is still reading the cluster")

    async def show(request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    shown: Handler = show
    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", for_allowed_callers(shown, reviews) if reviews else shown)
    return app
