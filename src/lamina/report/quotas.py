"""The quotas of a cluster on GPU memory and compute, one row for each resource that Lamina counts."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from lamina.ledger.quotas import usage
from lamina.report.cluster_view import ClusterView


class QuotaRow(Struct, frozen=True, kw_only=True):
    """What a ResourceQuota limits, in the unit of the resource."""

    namespace: str
    quota: str
    resource: str
    used: int
    hard: str
    """As it is written."""


def quota_rows(
    cluster: ClusterView, selected: Callable[[Mapping[str, str]], bool] | None = None, namespace: str = ""
) -> list[QuotaRow]:
    """The quotas of all namespaces or of one, or those whose labels are selected."""
    return [
        QuotaRow(
            namespace=of,
            quota=quota["metadata"]["name"],
            resource=resource.removeprefix("limits."),
            used=used,
            hard=hard,
        )
        for of, quota in cluster.quotas.objects()
        if namespace in ("", of)
        if selected is None or selected(quota["metadata"].get("labels") or {})
        for resource, (used, hard) in usage(quota, cluster.ledger.totals.taken_in_namespace(of), cluster.config).items()
    ]
