"""What workloads held and used, as series: their accounts, what containers used, and how long pods are idle."""

from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from lamina.agent.chargeback.amounts import Amounts
from lamina.agent.chargeback.book import Account, BookState, BusyCounter
from lamina.agent.chargeback.histories import ContainerHistory
from lamina.core.prices import Pricing
from lamina.dialects.samples import ShareSample

_PARTS = {
    "memory": ("requested", "used", "borrowed"),
    "compute": ("requested", "used", "borrowed", "lent"),
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
                gpus.add_metric((*of, part, figure), _amount(account.amounts, f"{part}_{figure}"))
        for figure in _GIB:
            memory.add_metric((*of, figure), _amount(account.amounts, f"gib_{figure}"))
    return gpus, memory


def _amount(amounts: Amounts, name: str) -> float:
    value: float = getattr(amounts, name)
    return value


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
