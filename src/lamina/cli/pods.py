"""`lamina pods`: the pods that request GPUs, what they hold, and why pending ones wait."""

from typing import Annotated

import typer

from lamina.cli.options import Kubeconfig, Namespace


def pods(
    namespace: Namespace = "",
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List pods in all namespaces.")
    ] = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """List pods that request GPUs: node, GPU, memory, compute, and the reason if pending."""
    from lamina.cli import tables
    from lamina.cli.connection import chosen_namespace, read_cluster
    from lamina.cli.terminal import console

    namespace = "" if all_namespaces else chosen_namespace(namespace, kubeconfig)
    cluster = read_cluster(kubeconfig)
    if not tables.print_pods(console, cluster, None if all_namespaces else namespace):
        scope = "this cluster" if all_namespaces else f"namespace {namespace}"
        console.print(f"No pod in {scope} requests a GPU.")
