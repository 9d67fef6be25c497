"""The state of one replica as metrics: whether it leads, its configuration, its certificates, and pods that wait."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from cryptography import x509
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lamina.controller.pending_pods import RefusedPods


class ReplicaState(NamedTuple):
    """One moment. `certificates` has a PEM text by purpose; only the leader knows of `pending` and `grantless` pods."""

    leading: bool = False
    transitions: int = 0
    configuration_refused: bool = False
    certificates: Mapping[str, bytes] = {}
    pending: Mapping[tuple[str, str], RefusedPods] = {}
    grantless: Mapping[str, int] = {}
    """Pods by namespace."""


class ReplicaMetrics(Collector):
    """Reads the state at each scrape."""

    def __init__(self, state: Callable[[], ReplicaState]) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        state = self._state()
        yield GaugeMetricFamily("lamina_leading", "1 if this replica of the controller leads, else 0.", state.leading)
        yield CounterMetricFamily(
            "lamina_leader_transitions",
            "How often another replica became the leader, as the Lease lamina-controller counts.",
            state.transitions,
        )
        yield GaugeMetricFamily(
            "lamina_configuration_refused",
            "1 while the newest configuration is refused and an older one is in force.",
            state.configuration_refused,
        )
        yield _expiry(state.certificates)
        yield from _pending(state.pending)
        yield _grantless(state.grantless)


def _expiry(certificates: Mapping[str, bytes]) -> Metric:
    """A certificate that cannot be read counts as expired."""
    metric = GaugeMetricFamily(
        "lamina_certificate_expiry_timestamp_seconds",
        "When a certificate that this replica serves ends, in seconds since 1970.",
        labels=("certificate",),
    )
    for purpose, pem in certificates.items():
        try:
            end = x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()
        except ValueError:
            end = 0.0
        metric.add_metric((purpose,), end)
    return metric


def _grantless(pods: Mapping[str, int]) -> Metric:
    metric = GaugeMetricFamily(
        "lamina_pods_without_grant",
        "Pods that have had tickets of a node and no grant for a minute.",
        labels=("namespace",),
    )
    for namespace, count in pods.items():
        metric.add_metric((namespace,), count)
    return metric


def _pending(groups: Mapping[tuple[str, str], RefusedPods]) -> Iterator[Metric]:
    labels = ("namespace", "cause")
    pods = GaugeMetricFamily(
        "lamina_pods_pending", "Pods that fit nowhere when they were last tried, by the nearest cause.", labels=labels
    )
    longest = GaugeMetricFamily(
        "lamina_pods_pending_longest_seconds",
        "Time since the first of these pods fit nowhere for the first time.",
        labels=labels,
    )
    for key, group in groups.items():
        pods.add_metric(key, group.pods)
        longest.add_metric(key, group.longest_s)
    yield from (pods, longest)
