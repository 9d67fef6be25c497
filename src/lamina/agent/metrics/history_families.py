"""What containers used over time as series: their histories, and how long pods have been idle."""

from collections.abc import Iterable, Sequence

from prometheus_client.core import GaugeMetricFamily

from lamina.agent.accounts.book import BusyCounter
from lamina.agent.accounts.histories import ContainerHistory
from lamina.dialects.samples import ShareSample

_QUANTILES = (0.5, 0.95, 0.99)
_LABELS = ("node", "namespace", "kind", "workload", "container")


def history_families(node: str, histories: Iterable[ContainerHistory]) -> list[GaugeMetricFamily]:
    """Peaks, percentiles and the time for which they are known."""
    peak = GaugeMetricFamily(
        "lamina_history_memory_peak_bytes",
        "The most memory that one container of the workload used in the last one to two weeks.",
        labels=_LABELS,
    )
    compute = GaugeMetricFamily(
        "lamina_history_compute_percent",
        "The GPU time that containers of the workload stayed below for this part of the last one to two weeks.",
        labels=(*_LABELS, "quantile"),
    )
    observed = GaugeMetricFamily(
        "lamina_history_observed_seconds", "The time for which this is known, of all containers.", labels=_LABELS
    )
    for history in histories:
        of = (node, *history.key)
        peak.add_metric(of, history.memory_peak)
        observed.add_metric(of, history.observed_s)
        for quantile in _QUANTILES:
            percent = history.compute_percent(quantile)
            if percent is not None:
                compute.add_metric((*of, str(quantile)), percent)
    return [peak, compute, observed]


def idle_family(
    node: str, shares: Iterable[ShareSample], counters: Sequence[BusyCounter], now: float
) -> GaugeMetricFamily:
    """The time since any container of a pod last used the GPU. `now` is since 1970."""
    metric = GaugeMetricFamily(
        "lamina_pod_idle_seconds",
        "Time since the pod last used the time of the GPU.",
        labels=("node", "namespace", "pod", "gpu"),
    )
    names = {share.pod_uid: (share.namespace, share.pod) for share in shares}
    changed: dict[tuple[str, str], float] = {}
    for counter in counters:
        holder = counter.pod_uid, counter.gpu
        changed[holder] = max(changed.get(holder, 0.0), counter.changed_at)
    for (uid, gpu), at in changed.items():
        if uid in names:
            metric.add_metric((node, *names[uid], gpu), max(0.0, now - at))
    return metric
