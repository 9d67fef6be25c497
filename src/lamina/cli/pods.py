"""`lamina pods`: the pods that request GPUs, what they hold, and why pending ones wait."""

from lamina.cli import tables
from lamina.cli.cluster_warnings import silent_agents, warnings
from lamina.cli.connection import chosen_namespace
from lamina.cli.lists import ListedCluster, ListKind, ListQuery, ListReading, list_command
from lamina.cli.options import AllNamespaces, Namespace
from lamina.operations import agent_metrics
from lamina.ports.kube import ProxiedKube
from lamina.report import cluster_reader
from lamina.report.pods import PodRow, deleted_rows, pods_with_gpus, rows_of
from lamina.report.refusals import refused_workloads


@list_command
def pods(
    listed: ListedCluster,
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
) -> ListQuery[PodRow]:
    """List pods that request GPUs: node, GPU, memory, compute, and the reason if pending.

    What is used comes from the metrics of the agents; `-` is what is not known. Workloads whose pods are refused, such
    as Deployments, come last, with the sentence that refuses them.
    """
    namespace = "" if all_namespaces else chosen_namespace(namespace, listed.choice)
    scope = "this cluster" if all_namespaces else f"namespace {namespace}"
    kind = ListKind(
        row=PodRow,
        table=lambda rows, wide: tables.pod_table(rows, wide=wide, namespaces=all_namespaces),
        name=lambda row: row.pod if "/" in row.pod else f"pod/{row.pod}",
        title=lambda row: f"{row.namespace}/{row.pod}{' (deleted)' if row.status == 'Deleted' else ''}",
        empty=f"No pod in {scope} requests a GPU{' and has these labels' if listed.selected else ''}.",
        notes=tables.reasons,
        namespace=namespace,
    )

    async def read(kube: ProxiedKube) -> ListReading[PodRow]:
        cluster = await cluster_reader.read(kube, claims=True, groups=True)
        where = None if all_namespaces else namespace
        shown = pods_with_gpus(cluster, where, listed.selected)
        nodes = {pod["spec"].get("nodeName") for pod in shown} & cluster.inventories.keys()
        use = await agent_metrics.read_use(kube, sorted(nodes), cluster.pods)
        refused, unread = await refused_workloads(kube, cluster.config, where, listed.selected)
        rows = [*rows_of(shown, cluster, use), *deleted_rows(cluster, where, listed.selected), *refused]
        return ListReading(rows, silent_agents(use), [*warnings(cluster), *([unread] if unread else ())])

    return ListQuery(kind, read)
