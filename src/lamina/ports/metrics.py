"""Metrics of programs: how many requests, how they ended, how long they took; and over HTTPS for allowed callers."""

import ssl
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from lamina import __version__
from lamina.ports.caller_reviews import CallerReviews
from lamina.ports.certificates import SERVER, Authority, server_context, use_certificate
from lamina.ports.set_aside import SetAside

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class RequestMetrics:
    """One registry, with a counter and a histogram by verb: filter, prioritize, preempt, bind, admit."""

    def __init__(self, set_aside: SetAside) -> None:
        self.registry = CollectorRegistry()
        self.decisions = Counter(
            "lamina_decisions", "Requests answered, by verb and outcome.", ["verb", "outcome"], registry=self.registry
        )
        self.seconds = Histogram(
            "lamina_decision_seconds",
            "Time from a request to its answer.",
            ["verb"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.registry.register(_OfEachProgram(set_aside))


def build_family() -> GaugeMetricFamily:
    """Which version serves these metrics."""
    family = GaugeMetricFamily("lamina_build_info", "Always 1. The version of the component.", labels=["version"])
    family.add_metric([__version__], 1)
    return family


class _OfEachProgram(Collector):
    def __init__(self, set_aside: SetAside) -> None:
        self._set_aside = set_aside

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        yield build_family()
        yield self._set_aside.family()


_VALID = timedelta(days=3650)
"""Longer than a process runs."""
Handler = Callable[[web.Request], Awaitable[web.Response]]


def metrics_context(now: float, name: str = "metrics") -> ssl.SSLContext:
    """TLS with a certificate for this process alone. It keeps tokens secret; callers cannot verify it."""
    context = server_context()
    authority = Authority(name, datetime.fromtimestamp(now, UTC), _VALID)
    use_certificate(context, *authority.sign(f"lamina {name}", SERVER, ["localhost"]))
    return context


def for_allowed_callers(handler: Handler, reviews: CallerReviews) -> Handler:
    """A handler that calls this one for callers that are allowed, and refuses others with the reason."""

    async def answer(request: web.Request) -> web.Response:
        verdict = await reviews.verdict(request.headers.get("Authorization", ""), request.remote or "")
        if verdict.status == 200:
            return await handler(request)
        headers = {"WWW-Authenticate": "Bearer"} if verdict.status == 401 else {}
        return web.Response(status=verdict.status, text=verdict.reason, headers=headers)

    return answer
