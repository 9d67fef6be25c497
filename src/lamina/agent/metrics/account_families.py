"""The accounts of workloads as series."""

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from lamina.agent.accounts.amounts import Amounts
from lamina.agent.accounts.book import Account, BookState
from lamina.core.prices import Pricing

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
