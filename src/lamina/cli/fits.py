"""`lamina fits`: whether the pods of a manifest would fit now, before they are created."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lamina.cli.cluster_warnings import warn_of_refused_configuration, warn_of_unread_nodes
from lamina.cli.connection import ClusterChoice, chosen_namespace, cluster_command, with_installation
from lamina.cli.exit_codes import ExitCode
from lamina.cli.options import ANSWER_OUTPUTS, AnswerOutput, Namespace, one_of
from lamina.cli.terminal import console, print_document
from lamina.dialects.groups import GroupName
from lamina.ports.kube import Kube
from lamina.ports.user_files import read_text
from lamina.report import cluster_reader
from lamina.report.cluster_view import ClusterView
from lamina.report.fit_groups import read_needed
from lamina.report.pod_templates import claim_manifests, pod_groups, pod_templates
from lamina.report.what_fits import FitCheck

_STDIN = Path("-")


@cluster_command
def fits(
    choice: ClusterChoice,
    file: Annotated[
        Path, typer.Option("--filename", "-f", help="Manifest with pods or workloads; `-` reads standard input.")
    ],
    namespace: Namespace = "",
    output: AnswerOutput = "text",
) -> None:
    """Tell whether the pods of a manifest would fit now, on which GPUs, or what is missing in numbers.

    Pods of Deployments, ReplicaSets, StatefulSets, Jobs and CronJobs are tried one after another, as many as they
    have. What counts is what is free of GPUs, quotas on them, node selectors and required node affinity, taints,
    cordoned nodes, and CPU, memory and other resources of nodes. A group fits with as many members as its PodGroup or
    Job needs, in the file or the cluster, or not at all. What pods demand of each other's places, host ports and
    volumes are not checked. ResourceClaims, those of the file included, are tried on the devices that nodes offer, if
    that is possible without evaluating their expressions. Exits with 0 if all pods fit, 1 if one does not or if that is
    not known, 2 for a manifest that cannot be read or that admission would refuse, and 3 if the cluster cannot be
    reached.
    """
    one_of(output, ANSWER_OUTPUTS, "--output")
    text = sys.stdin.read() if file == _STDIN else read_text(file)
    where = "standard input" if file == _STDIN else str(file)
    chosen = chosen_namespace(namespace, choice)
    templates, groups = pod_templates(text, where, chosen), pod_groups(text, where, chosen)
    claims = claim_manifests(text, where, chosen)

    async def read(kube: Kube) -> tuple[ClusterView, dict[GroupName, int | str]]:
        cluster = await cluster_reader.read(kube, hosts=True, claims=True)
        return cluster, await read_needed(kube, templates, groups, cluster.config)

    cluster, needed = with_installation(choice, read)
    warn_of_refused_configuration(cluster)
    warn_of_unread_nodes(cluster)
    cluster.claims = cluster.claims.with_manifest(*claims)
    answers = list(FitCheck(cluster).check_all(templates, needed))
    if output != "text":
        print_document([answer._asdict() for answer in answers], output)
    else:
        for line in (line for answer in answers for line in answer.lines):
            console.print(line, soft_wrap=True, markup=False)
    if not all(answer.fits for answer in answers):
        raise typer.Exit(ExitCode.NO)
