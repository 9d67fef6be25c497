"""What the control part tells Prometheus: its decisions and how long they took, and what is granted of each GPU."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lamina.control.ledger import Ledger
from lamina.control.metrics_of_others import families
from lamina.model.ledger import NOTHING

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Metrics:
    """One registry, with a counter and a histogram by verb: filter, prioritize, bind, admit."""

    def __init__(
        self,
        ledger: Ledger,
        named: Callable[[], Iterable[str]] = tuple,
        quotas: Callable[[], Iterator[GaugeMetricFamily]] = lambda: iter(()),
    ) -> None:
        """`named` tells the vocabularies whose names are given as well, see `metrics_of_others`, and `quotas` the
        families of quotas, which are HAMi's."""
        self.registry = CollectorRegistry()
        self.decisions = Counter(
            "lamina_decisions", "Answers given, by verb and outcome.", ["verb", "outcome"], registry=self.registry
        )
        self.seconds = Histogram(
            "lamina_decision_seconds",
            "Time from a request to its answer.",
            ["verb"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.registry.register(_Granted(ledger))
        self.registry.register(_OfOthers(ledger, named, quotas))


class _Granted(Collector):
    """Per GPU, read from the ledger when somebody asks."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def collect(self) -> Iterator[GaugeMetricFamily]:
        labels = ["node", "gpu", "model"]
        shares, memory, cores, capacity = (
            GaugeMetricFamily(f"lamina_gpu_{name}", text, labels=labels)
            for name, text in (
                ("shares_granted", "Containers that hold a share."),
                ("memory_granted_mebibytes", "Memory granted in sum."),
                ("cores_granted_percent", "Compute granted in sum."),
                ("memory_capacity_mebibytes", "Memory that may be granted in sum."),
            )
        )
        for node in sorted(self._ledger.nodes()):
            inventory = self._ledger.inventory(node)
            taken = self._ledger.taken(node)
            for gpu in inventory.gpus if inventory else ():
                held = taken.get(gpu.uuid, NOTHING)
                key = [node, gpu.uuid, gpu.model]
                shares.add_metric(key, held.slots)
                memory.add_metric(key, held.memory_mib)
                cores.add_metric(key, held.cores)
                capacity.add_metric(key, gpu.capacity_mib)
        yield from (shares, memory, cores, capacity)


class _OfOthers(Collector):
    def __init__(
        self, ledger: Ledger, named: Callable[[], Iterable[str]], quotas: Callable[[], Iterator[GaugeMetricFamily]]
    ) -> None:
        self._ledger = ledger
        self._named = named
        self._quotas = quotas

    def collect(self) -> Iterator[GaugeMetricFamily]:
        named = set(self._named())
        yield from families(self._ledger, named)
        if "hami" in named:
            yield from self._quotas()
