"""The controller's Prometheus metrics: its decisions, how long they took, and what is granted of each GPU."""

from collections.abc import Callable, Iterator

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lamina.core.ledger import NOTHING, taken_by_claims
from lamina.ledger.ledger import Ledger
from lamina.ports.metrics import RequestMetrics
from lamina.ports.set_aside import SetAside


class Metrics(RequestMetrics):
    """Those of its requests, of what is granted, and of what the controller does by itself."""

    def __init__(
        self,
        ledger: Ledger,
        set_aside: SetAside,
        compat: Callable[[], Iterator[GaugeMetricFamily]] = lambda: iter(()),
        leading: Callable[[], bool] = lambda: True,
    ) -> None:
        """`compat` returns the families under the names of other systems, see `compat.metrics`.

        Only the replica that leads serves what is granted, so that a sum over all replicas counts it once.
        """
        super().__init__(set_aside)
        self.moved_pods = Counter(
            "lamina_defragmentation_moved_pods", "Pods evicted so that a GPU becomes idle.", registry=self.registry
        )
        self.defragmentation = Counter(
            "lamina_defragmentation",
            "GPUs that defragmentation freed, and plans that it aborted.",
            ["outcome"],
            registry=self.registry,
        )
        self.registry.register(_OfTheLeader(lambda: _granted(ledger), leading))
        self.registry.register(_OfTheLeader(compat, leading))


def _granted(ledger: Ledger) -> Iterator[GaugeMetricFamily]:
    """Per GPU."""
    labels = ["node", "gpu", "model"]
    shares, memory, cores, capacity, claimed_memory, claimed_cores = (
        GaugeMetricFamily(f"lamina_gpu_{name}", text, labels=labels)
        for name, text in (
            ("shares_granted", "Containers that hold a share of the GPU."),
            ("memory_granted_mebibytes", "Memory granted, in total."),
            ("cores_granted_percent", "Compute granted, in total."),
            ("memory_capacity_mebibytes", "Memory that can be granted, in total."),
            ("memory_claimed_mebibytes", "Memory that ResourceClaims hold, in total."),
            ("cores_claimed_percent", "Compute that ResourceClaims hold, in total."),
        )
    )
    for node in sorted(ledger.nodes()):
        inventory = ledger.inventory(node)
        taken = ledger.totals.taken(node)
        claimed = taken_by_claims(inventory.claims if inventory else ())
        for gpu in inventory.gpus if inventory else ():
            held = taken.get(gpu.uuid, NOTHING)
            key = [node, gpu.uuid, gpu.model]
            shares.add_metric(key, held.slots)
            memory.add_metric(key, held.memory_mib)
            cores.add_metric(key, held.cores)
            capacity.add_metric(key, gpu.capacity_mib)
            by_claims = claimed.get(gpu.uuid, NOTHING)
            claimed_memory.add_metric(key, by_claims.memory_mib)
            claimed_cores.add_metric(key, by_claims.cores)
    yield from (shares, memory, cores, capacity, claimed_memory, claimed_cores)


class _OfTheLeader(Collector):
    """Families that are computed at each scrape, and only while this replica leads."""

    def __init__(self, families: Callable[[], Iterator[GaugeMetricFamily]], leading: Callable[[], bool]) -> None:
        self._families = families
        self._leading = leading

    def collect(self) -> Iterator[GaugeMetricFamily]:
        return self._families() if self._leading() else iter(())
