"""`lamina why`: why a pod, or the pods of a workload, are pending."""

from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.options import Kubeconfig, Namespace

if TYPE_CHECKING:
    from lamina.ports.kube import Kube


def why(
    name: Annotated[
        str, typer.Argument(metavar="POD", help="Name of the pod, or KIND/NAME of a workload, such as deploy/web.")
    ],
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
) -> None:
    """Explain why a pod is pending, per node or group of equal nodes, in numbers, or when it was refused GPU memory."""
    from lamina.cli.connection import chosen_namespace, warn_of_refused_configuration, with_cluster
    from lamina.cli.terminal import console
    from lamina.operations import cluster_view, pending_reasons, workloads
    from lamina.operations.refused_memory import last_refusal

    chosen = chosen_namespace(namespace, kubeconfig)

    async def explain(kube: "Kube") -> list[str]:
        cluster = await cluster_view.read(kube)
        warn_of_refused_configuration(cluster)
        if "/" in name and not name.startswith(("pod/", "pods/")):
            return [*await workloads.why(kube, cluster, chosen, name)]
        pod = pending_reasons.pod_named(cluster, chosen, name.rpartition("/")[2])
        lines = [*pending_reasons.why(cluster, chosen, pod["metadata"]["name"])]
        return [*lines, *(await last_refusal(kube, pod) if pod["spec"].get("nodeName") else ())]

    for line in with_cluster(kubeconfig, explain):
        console.print(line, soft_wrap=True, markup=False)
