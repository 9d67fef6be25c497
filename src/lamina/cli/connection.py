"""Running an operation against a cluster."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

if TYPE_CHECKING:
    from lamina.operations.cluster_view import ClusterView
    from lamina.ports.kube import Kube

_T = TypeVar("_T")


def with_cluster(kubeconfig: Path | None, operation: "Callable[[Kube], Awaitable[_T]]") -> _T:
    """Connect, run the operation, and close the connection. Raises Outside when the cluster cannot be reached."""

    async def connected() -> _T:
        from lamina.ports.kube.client import connect

        kube = await connect(kubeconfig)
        try:
            return await operation(kube)
        finally:
            await kube.close()

    return asyncio.run(connected())


def read_cluster(kubeconfig: Path | None) -> "ClusterView":
    """One reading of pods, grants and inventories, with a warning about a configuration that is refused.

    Raises BadInput where Lamina is not installed.
    """
    from lamina.operations import cluster_view

    cluster = with_cluster(kubeconfig, cluster_view.read)
    if cluster.config_refusal:
        typer.echo(f"Warning: {cluster.config_refusal}. The previous configuration is in force.", err=True)
    return cluster
