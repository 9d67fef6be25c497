"""`lamina pods` and `lamina why`: who holds which part of which GPU, and why a pod waits."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lamina.cli.cluster import Cluster

Kubeconfig = Annotated[
    Path | None, typer.Option("--kubeconfig", help="Where the cluster is; otherwise as kubectl finds it.")
]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="The namespace to look in.")]


def pods(
    namespace: Namespace = "default",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Look in all of them.")] = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """List the pods that ask for GPUs: node, GPU, memory, compute, and for each Pending one the reason."""
    from lamina.cli import tables
    from lamina.cli.terminal import console

    cluster = asyncio.run(_read(kubeconfig))
    if not tables.print_pods(console, cluster, None if all_namespaces else namespace):
        where = "this cluster" if all_namespaces else f"namespace {namespace}"
        console.print(f"No pod in {where} asks for a GPU.")


def why(
    pod: Annotated[str, typer.Argument(help="The pod's name.")],
    namespace: Namespace = "default",
    kubeconfig: Kubeconfig = None,
) -> None:
    """Say why a pod waits: per node or group of equal nodes, in numbers."""
    from lamina.cli import reasons
    from lamina.cli.terminal import console

    cluster = asyncio.run(_read(kubeconfig))
    for line in reasons.why(cluster, namespace, pod):
        console.print(line, soft_wrap=True, markup=False)


async def _read(kubeconfig: Path | None) -> "Cluster":
    from lamina.cli import cluster
    from lamina.ports.kube.client import connect

    kube = await connect(kubeconfig)
    try:
        return await cluster.read(kube)
    finally:
        await kube.close()
