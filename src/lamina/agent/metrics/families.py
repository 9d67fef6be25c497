"""The metrics of a node: Lamina's own names, accounts of workloads, and rendering of all tables, also of dialects."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from lamina.agent.chargeback.book import Account, BookState, BusyCounter
from lamina.agent.chargeback.histories import ContainerHistory
from lamina.configuration import Config
from lamina.core.prices import Pricing
from lamina.dialects.metrics import MetricFamily, MetricTable, NodeMetrics, counter, gauge
from lamina.dialects.registry import node_metrics
from lamina.dialects.samples import GpuSample, MigSample, ShareSample
from lamina.ports.set_aside import SetAside

_PARTS = {
    "memory": ("requested", "observed", "used", "borrowed"),
    "compute": ("requested", "observed", "used", "borrowed", "lent"),
}
_GIB = ("requested", "used", "borrowed")


def account_families(node: str, book: BookState) -> list[CounterMetricFamily]:
    """Series of workloads, of labels, of what was folded, and of GPUs."""
    workloads = [each for each in book.accounts if not each.key.label]
    labels = [each for each in book.accounts if each.key.label]
    return [
        *_families(
            "lamina_workload",
            ("namespace", "kind", "workload"),
            "that pods of a workload held or used",
            node,
            workloads,
        ),
        *_families(
            "lamina_label", ("namespace", "label", "value"), "that pods with a label held or used", node, labels
        ),
        *_families(
            "lamina_past_workload", ("namespace", "label"), "of workloads that are gone for a day", node, book.past
        ),
        _gpus(node, book),
    ]


def _families(
    name: str, labels: tuple[str, ...], what: str, node: str, accounts: Iterable[Account]
) -> tuple[CounterMetricFamily, CounterMetricFamily]:
    first = ("node", *labels, "model")
    gpus = CounterMetricFamily(
        f"{name}_gpu_seconds", f"Parts of GPUs {what}, multiplied by time.", labels=(*first, "part", "figure")
    )
    memory = CounterMetricFamily(
        f"{name}_memory_gibibyte_seconds", f"GiB {what}, multiplied by time.", labels=(*first, "figure")
    )
    for account in accounts:
        key = account.key
        known = {"namespace": key.namespace, "kind": key.kind, "workload": key.workload, "label": key.label}
        of = (node, *((known | {"value": key.workload})[each] for each in labels), key.model)
        for part, figures in _PARTS.items():
            for figure in figures:
                _add_known(gpus, (*of, part, figure), account.amounts.figure(part, figure))
        for figure in _GIB:
            _add_known(memory, (*of, figure), account.amounts.figure("gib", figure))
    return gpus, memory


def _add_known(metric: CounterMetricFamily, labels: tuple[str, ...], value: float | None) -> None:
    """What is not known has no sample."""
    if value is not None:
        metric.add_metric(labels, value)


def price_family(node: str, models: Iterable[str], pricing: Pricing) -> GaugeMetricFamily:
    """What the memory and the compute of GPUs of these models cost; without a sample for models without a price."""
    metric = GaugeMetricFamily(
        "lamina_gpu_price_per_hour",
        "Price of all memory or all compute of a GPU for an hour, by the configuration.",
        labels=("node", "model", "part", "currency"),
    )
    for model in sorted(set(models)):
        for part in _PARTS:
            price = pricing.per_hour(model, part)
            if price is not None:
                metric.add_metric((node, model, part, pricing.currency), price)
    return metric


def _gpus(node: str, book: BookState) -> CounterMetricFamily:
    metric = CounterMetricFamily(
        "lamina_gpu_seconds",
        "GPUs multiplied by time: all of it (`capacity`), and what no pod requested (`idle`).",
        labels=("node", "model", "part", "figure"),
    )
    for model, time in book.gpus.items():
        for part, idle in (("memory", time.idle_memory), ("compute", time.idle_compute)):
            metric.add_metric((node, model, part, "capacity"), time.capacity)
            metric.add_metric((node, model, part, "idle"), idle)
    return metric


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
        if history.memory_peak is not None:
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
    for busy in counters:
        holder = busy.pod_uid, busy.gpu
        changed[holder] = max(changed.get(holder, 0.0), busy.changed_at)
    for (uid, gpu), at in changed.items():
        if uid in names:
            metric.add_metric((node, *names[uid], gpu), max(0.0, now - at))
    return metric


S = TypeVar("S")


def _of_shares(prefix: str, who: str) -> tuple[MetricFamily[ShareSample], ...]:
    """The families about what `who` may use of a GPU, and uses."""
    return (
        gauge(f"{prefix}_memory_limit_bytes", f"Memory of the GPU that the {who} may use.",
              lambda s: s.limit or None),
        gauge(f"{prefix}_memory_request_bytes", f"Memory of the GPU that is guaranteed to the {who}.",
              lambda s: s.guaranteed or None),
        gauge(f"{prefix}_memory_borrowed_bytes",
              f"Memory that the {who} uses beyond what is guaranteed to it.", lambda s: s.borrowed),
        gauge(f"{prefix}_memory_hosted_bytes",
              f"Borrowed memory that the {who} keeps on the host, because others need the GPU's memory.",
              lambda s: s.hosted),
        MetricFamily(f"{prefix}_memory_used_bytes",
                     f"Memory that the {who} uses, by kind of allocation.",
                     lambda s: (((kind,), size) for kind, size in s.held.items()), ("kind",)),
        gauge(f"{prefix}_memory_spilled_bytes",
              f"Memory of the {who} that became managed memory because the GPU was full.",
              lambda s: s.spilled),
        gauge(f"{prefix}_memory_peak_bytes", f"The most memory that the {who} ever used.",
              lambda s: s.peak),
        counter(f"{prefix}_memory_refusals", "Allocations refused because they exceeded the limit.",
                lambda s: s.refusals),
        gauge(f"{prefix}_cores_percent",
              f"The {who}'s share of the GPU's time; 0 if it requested none.", lambda s: s.cores_percent),
        counter(f"{prefix}_busy_seconds", f"GPU time of the {who}.", lambda s: s.busy_s if s.busy_is_whole else None),
        counter(f"{prefix}_waited_seconds",
                f"Time for which threads of the {who} waited for their share.", lambda s: s.waited_s),
        gauge(f"{prefix}_launch_window_seconds",
              f"For how long the {who} begins launches in each period of 20 ms; 0 if it always may.",
              lambda s: s.window_s),
        gauge(f"{prefix}_launch_seconds",
              f"What a launch of the {who} takes on the GPU, on average: a kernel, or a graph. Known while it has a "
              "share of time, or neighbors need to know.", lambda s: s.launch_s),
        gauge(f"{prefix}_utilization_percent", f"GPU time of the {who} over the last seconds.",
              lambda s: s.busy_percent),
        MetricFamily(f"{prefix}_enforcer", f"Always 1: what limits the memory of the {who}.",
                     lambda s: (((s.enforcer,), 1.0),), ("enforcer",)),
    )  # fmt: skip


OWN = NodeMetrics(
    gpus=(
        MetricTable[GpuSample](
            ("node", "gpu", "index", "model"),
            lambda s: (s.node, s.uuid, str(s.index), s.model),
            (
                gauge("lamina_gpu_memory_bytes", "Memory of the GPU.", lambda s: s.memory_bytes or None),
                gauge("lamina_gpu_memory_used_bytes", "Memory in use by all processes.",
                      lambda s: s.reading.used_bytes),
                gauge("lamina_gpu_utilization_percent", "Share of recent time in which a kernel ran.",
                      lambda s: s.reading.busy_percent),
                MetricFamily("lamina_gpu_healthy", "1 if containers may use the GPU, else 0 with the reason.",
                             lambda s: (((s.reason,), float(not s.reason)),), ("reason",)),
                MetricFamily("lamina_mps_ready", "1 if the GPU's MPS daemon serves clients, else 0, with its state.",
                             lambda s: (((s.mps.state.value,), float(s.mps.ready)),) if s.mps else (), ("state",)),
            ),
        ),
    ),
    mig_devices=(
        MetricTable[MigSample](
            ("node", "gpu", "index", "mig", "profile", "instance"),
            lambda s: (s.node, s.gpu, str(s.index), s.uuid, s.profile, str(s.instance_id)),
            (
                gauge("lamina_mig_memory_bytes", "Memory of the MIG device.", lambda s: s.reading.total_bytes),
                gauge("lamina_mig_memory_used_bytes", "Memory of the MIG device in use by all processes.",
                      lambda s: s.reading.used_bytes),
                MetricFamily("lamina_mig_healthy", "1 if containers may use the MIG device, else 0 with the reason.",
                             lambda s: (((s.reason,), float(not s.reason)),), ("reason",)),
            ),
        ),
    ),
    shares=(
        MetricTable[ShareSample](
            ("node", "namespace", "pod", "container", "gpu"),
            lambda s: (s.node, s.namespace, s.pod, s.container, s.gpu),
            _of_shares("lamina_container", "container"),
        ),
    ),
)  # fmt: skip
CLAIMS = MetricTable[ShareSample](
    ("node", "namespace", "claim", "request", "gpu"),
    lambda s: (s.node, s.namespace, s.pod, s.container, s.gpu),
    _of_shares("lamina_claim", "request"),
)
"""Of the requests of ResourceClaims, each of which all of its containers have together. Samples have the claim in the
place of the pod."""


def families(
    config: Config,
    gpus: Iterable[GpuSample],
    mig_devices: Iterable[MigSample],
    shares: Iterable[ShareSample],
    aside: SetAside,
    claims: Iterable[ShareSample] = (),
) -> Iterator[Metric]:
    """All families of Lamina and of the dialects that the configuration wants. Values that are unknown are left out.

    A family that fails is set aside.
    """
    every = (OWN, *node_metrics(config))
    yield from _render((table for metrics in every for table in metrics.gpus), tuple(gpus), aside)
    yield from _render((table for metrics in every for table in metrics.mig_devices), tuple(mig_devices), aside)
    yield from _render((table for metrics in every for table in metrics.shares), tuple(shares), aside)
    yield from _render((CLAIMS,), tuple(claims), aside)


def look_family(node: str, looked_at: float | None) -> GaugeMetricFamily:
    """When the agent last asked for the GPUs; without a sample before the first time."""
    metric = GaugeMetricFamily(
        "lamina_gpus_read_timestamp_seconds",
        "When the agent last asked the driver for the node's GPUs, in seconds since 1970.",
        labels=("node",),
    )
    if looked_at is not None:
        metric.add_metric((node,), looked_at)
    return metric


def _render(tables: Iterable[MetricTable[S]], samples: tuple[S, ...], aside: SetAside) -> Iterator[Metric]:
    for table in tables:
        for family in table.families:
            kind = CounterMetricFamily if family.counter else GaugeMetricFamily
            metric = kind(family.name, family.help, labels=(*table.labels, *family.labels))
            with aside.around("metric", family.name):
                for sample in samples:
                    for own, value in family.read(sample):
                        if value is not None:
                            metric.add_metric((*table.key(sample), *own), value)
            yield metric
