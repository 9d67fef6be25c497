"""`lamina why`: why a pod, or the pods of a workload, are pending."""

from typing import Annotated

import typer

from lamina.cli.cluster_warnings import warn_of_refused_configuration, warn_of_unread_nodes
from lamina.cli.connection import ClusterChoice, chosen_namespace, cluster_command, with_installation
from lamina.cli.exit_codes import ExitCode
from lamina.cli.options import ANSWER_OUTPUTS, AnswerOutput, Namespace, one_of
from lamina.cli.terminal import console, print_document
from lamina.operations import workloads
from lamina.ports.kube import Kube
from lamina.report import cluster_reader


@cluster_command
def why(
    choice: ClusterChoice,
    name: Annotated[
        str, typer.Argument(metavar="POD", help="Name of the pod, or KIND/NAME of a workload, such as deploy/web.")
    ],
    namespace: Namespace = "",
    output: AnswerOutput = "text",
) -> None:
    """Explain why a pod is pending, per node or group of equal nodes, in numbers, or when it was refused GPU memory.

    Exits with 0 if the pod has a place and its containers start, 1 if it is pending, refused or cannot start, 2 if
    there is no such pod, and 3 if the cluster cannot be reached. Of a workload, that holds for all of its pods.
    """
    one_of(output, ANSWER_OUTPUTS, "--output")
    chosen = chosen_namespace(namespace, choice)

    async def explain(kube: Kube) -> workloads.Explained:
        cluster = await cluster_reader.read(kube, hosts=True, claims=True, groups=True)
        warn_of_refused_configuration(cluster)
        warn_of_unread_nodes(cluster)
        return await workloads.explain(kube, cluster, chosen, name)

    explained = with_installation(choice, explain)
    if output != "text":
        answer = {"namespace": chosen, "name": name, "runs": explained.runs, "pods": explained.pods}
        print_document(answer | {"lines": explained.lines}, output)
    else:
        for line in explained.lines:
            console.print(line, soft_wrap=True, markup=False)
    if explained.waits:
        raise typer.Exit(ExitCode.NO)
