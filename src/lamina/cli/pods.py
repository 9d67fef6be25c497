"""`lamina pods`: the pods that request GPUs, what they hold, and why pending ones wait."""

from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.options import Kubeconfig, Namespace, NoHeaders, Output, Selector, SortBy, Watch

if TYPE_CHECKING:
    from lamina.cli.lists import ListReading
    from lamina.operations.pod_rows import PodEntry
    from lamina.ports.kube import Kube


def pods(
    namespace: Namespace = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List pods in all namespaces.")
    ] = False,
    selector: Selector = "",
    output: Output = "table",
    sort_by: SortBy = "",
    no_headers: NoHeaders = False,
    watch: Watch = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """List pods that request GPUs: node, GPU, memory, compute, and the reason if pending.

    Workloads whose pods are refused, such as Deployments, come last, with the sentence that refuses them.
    """
    from lamina.cli import tables
    from lamina.cli.connection import chosen_namespace, warnings
    from lamina.cli.lists import ListForm, ListKind, ListReading, list_objects
    from lamina.operations import cluster_view
    from lamina.operations.pod_rows import PodEntry, pod_rows
    from lamina.operations.refused_workloads import refused_workloads
    from lamina.ports.kube.selectors import label_selector

    namespace = "" if all_namespaces else chosen_namespace(namespace, kubeconfig)
    selected = label_selector(selector) if selector else None
    scope = "this cluster" if all_namespaces else f"namespace {namespace}"
    kind = ListKind(
        row=PodEntry,
        table=lambda rows, wide: tables.pod_table(rows, wide=wide, namespaces=all_namespaces),
        name=lambda row: row.pod if "/" in row.pod else f"pod/{row.pod}",
        title=lambda row: f"{row.namespace}/{row.pod}{' (deleted)' if row.status == 'Deleted' else ''}",
        empty=f"No pod in {scope} requests a GPU{' and has these labels' if selector else ''}.",
        notes=tables.reasons,
    )

    async def read(kube: "Kube") -> "ListReading[PodEntry]":
        cluster = await cluster_view.read(kube)
        where = None if all_namespaces else namespace
        refused, unread = await refused_workloads(kube, cluster.config, where, selected)
        rows = [*pod_rows(cluster, where, selected), *refused]
        return ListReading(rows, warnings=[*warnings(cluster), *([unread] if unread else ())])

    list_objects(kind, ListForm(output, sort_by, not no_headers, watch), kubeconfig, read)
