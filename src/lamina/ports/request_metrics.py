"""The metrics of a program that answers requests: how many, how they ended, how long they took, what was set aside."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

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
        self.registry.register(_SetAsideMetrics(set_aside))


class _SetAsideMetrics(Collector):
    def __init__(self, set_aside: SetAside) -> None:
        self._set_aside = set_aside

    def collect(self) -> Iterator[CounterMetricFamily]:
        yield self._set_aside.family()
