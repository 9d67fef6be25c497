"""The accounts of a cluster as rows: GPU-hours of namespaces, workloads or values of a label, and what they cost."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct, structs

from lamina.core.prices import Pricing
from lamina.errors import BadInput
from lamina.operations.cost.accounts import ClusterAccount, ClusterAccounts, Figures

NAMESPACE, WORKLOAD, LABEL = "namespace", "workload", "label"
_HOUR_S = 3600


class CostRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """GPU-hours of memory and of compute, GiB-hours, and the cost of what was requested.

    `cost` is None where a GPU of the row has no price, and another figure where it is not known or does not apply.
    What was observed is the part of the request whose use is known: what was used, borrowed and lent is of that part.
    """

    namespace: str = ""
    kind: str = ""
    workload: str = ""
    label: str = ""
    """The value of the label."""
    memory_requested: float = 0.0
    memory_observed: float = 0.0
    memory_used: float | None = None
    memory_borrowed: float | None = None
    compute_requested: float = 0.0
    compute_observed: float = 0.0
    compute_used: float | None = None
    compute_borrowed: float | None = None
    compute_lent: float | None = None
    gib_requested: float = 0.0
    gib_used: float | None = None
    gib_borrowed: float | None = None
    cost: float | None = None


class _RowKey(NamedTuple):
    namespace: str = ""
    kind: str = ""
    workload: str = ""
    label: str = ""


def cost_rows(
    accounts: ClusterAccounts, pricing: Pricing, *, by: str, label: str = "", namespace: str = ""
) -> list[CostRow]:
    """The rows `by` namespace, workload or label, the dearest first. Raises BadInput for a label without accounts."""
    if by == LABEL and label not in pricing.labels:
        known = f"; it has {', '.join(dict.fromkeys(pricing.labels))}" if pricing.labels else ""
        raise BadInput(f"the label {label!r} has no accounts; add it to pricing.labels in the configuration{known}")
    wanted = label if by == LABEL else ""
    found: dict[_RowKey, dict[str, list[Figures]]] = {}
    for account, figures in accounts.held.items():
        if account.label == wanted and namespace in ("", account.namespace):
            found.setdefault(_key(account, by), {}).setdefault(account.model, []).append(figures)
    rows = [_row(key, models, pricing) for key, models in found.items()]
    return sorted(
        rows, key=lambda row: (-(row.cost or 0), -row.memory_requested - row.compute_requested, row.namespace)
    )


def idle_row(accounts: ClusterAccounts, pricing: Pricing) -> CostRow:
    """What no pod requested, as if it were one that did."""
    parts = ("memory", "compute")
    models = {
        model: [{f"{part}_requested": figures.get(f"{part}_idle", 0.0) for part in parts}]
        for model, figures in accounts.gpus.items()
    }
    return _row(_RowKey(), models, pricing)


def _key(account: ClusterAccount, by: str) -> _RowKey:
    if by == LABEL:
        return _RowKey(label=account.workload)
    if by == WORKLOAD:
        return _RowKey(account.namespace, account.kind, account.workload)
    return _RowKey(account.namespace)


def _row(key: _RowKey, models: Mapping[str, Iterable[Figures]], pricing: Pricing) -> CostRow:
    sums: dict[str, float] = {}
    cost: float | None = 0.0
    for model, several in models.items():
        hours: dict[str, float] = {}
        for figures in several:
            for name, seconds in figures.items():
                hours[name] = hours.get(name, 0.0) + seconds / _HOUR_S
        for name, value in hours.items():
            sums[name] = sums.get(name, 0.0) + value
        for part in ("memory", "compute"):
            price = pricing.per_hour(model, part)
            cost = None if cost is None or price is None else cost + price * hours.get(f"{part}_requested", 0.0)
    row = CostRow(**key._asdict(), cost=cost)
    return structs.replace(row, **{name: value for name, value in sums.items() if hasattr(row, name)})
