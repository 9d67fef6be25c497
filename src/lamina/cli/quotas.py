"""`lamina quotas`: the quotas of all namespaces on GPU memory and compute."""

from typing import TYPE_CHECKING

from lamina.cli.options import Kubeconfig, NoHeaders, Output, Selector, SortBy, Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from lamina.cli.lists import ListReading
    from lamina.ports.kube import Kube
    from lamina.report.quotas import QuotaRow


def quotas(
    selector: Selector = "",
    output: Output = "table",
    sort_by: SortBy = "",
    no_headers: NoHeaders = False,
    watch: Watch = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """List quotas on GPU memory and compute in all namespaces, with current usage."""
    from lamina.cli.connection import warnings
    from lamina.cli.lists import ListForm, ListKind, ListReading, list_objects
    from lamina.ports.kube.selectors import label_selector
    from lamina.report import cluster_view
    from lamina.report.quotas import QuotaRow, quota_rows

    selected = label_selector(selector) if selector else None
    kind = ListKind(
        row=QuotaRow,
        table=lambda rows, wide: _table(rows),
        name=lambda row: f"resourcequota/{row.quota}",
        title=lambda row: f"{row.resource} of quota {row.namespace}/{row.quota}",
        empty=f"No quota in this cluster {'has these labels and ' if selector else ''}limits GPU memory or compute.",
    )

    async def read(kube: "Kube") -> "ListReading[QuotaRow]":
        cluster = await cluster_view.read(kube)
        return ListReading(quota_rows(cluster, selected), warnings=warnings(cluster))

    list_objects(kind, ListForm(output, sort_by, not no_headers, watch), kubeconfig, read)


def _table(rows: "Sequence[QuotaRow]") -> "Table":
    from rich.table import Table

    table = Table("NAMESPACE", "QUOTA", "RESOURCE", "USED", "HARD", box=None, pad_edge=False)
    for row in rows:
        table.add_row(row.namespace, row.quota, row.resource, str(row.used), row.hard)
    return table
