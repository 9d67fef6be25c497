"""`lamina quotas`: the quotas of all namespaces on GPU memory and compute."""

from collections.abc import Sequence

from rich.table import Table

from lamina.cli.cluster_warnings import warnings
from lamina.cli.lists import ListedCluster, ListKind, ListQuery, ListReading, list_command
from lamina.cli.options import AllNamespaces, OneNamespace
from lamina.ports.kube import Kube
from lamina.report import cluster_reader
from lamina.report.quotas import QuotaRow, quota_rows


@list_command
def quotas(
    listed: ListedCluster, namespace: OneNamespace = "", all_namespaces: AllNamespaces = False
) -> ListQuery[QuotaRow]:
    """List quotas on GPU memory and compute in all namespaces, with current usage."""
    namespace = "" if all_namespaces else namespace
    scope = f"namespace {namespace}" if namespace else "this cluster"
    of_these = "has these labels and " if listed.selected else ""
    kind = ListKind(
        row=QuotaRow,
        table=lambda rows, wide: _table(rows),
        name=lambda row: f"resourcequota/{row.quota}",
        title=lambda row: f"{row.resource} of quota {row.namespace}/{row.quota}",
        empty=f"No quota in {scope} {of_these}limits GPU memory or compute.",
        namespace=namespace,
    )

    async def read(kube: Kube) -> ListReading[QuotaRow]:
        cluster = await cluster_reader.read(kube)
        return ListReading(quota_rows(cluster, listed.selected, namespace), warnings=warnings(cluster))

    return ListQuery(kind, read)


def _table(rows: Sequence[QuotaRow]) -> Table:
    table = Table("NAMESPACE", "QUOTA", "RESOURCE", "USED", "HARD", box=None, pad_edge=False)
    for row in rows:
        table.add_row(row.namespace, row.quota, row.resource, str(row.used), row.hard)
    return table
