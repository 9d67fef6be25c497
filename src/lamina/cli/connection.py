"""Running an operation against a cluster.

The client is imported when a command connects, so that the help of a command, and a mistake in it, do not wait for it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import typer

from lamina.cli.terminal import answered
from lamina.ports.kube import ConnectedKube
from lamina.ports.kube.errors import Refused
from lamina.report import cluster_reader
from lamina.report.cluster_use import ClusterUse
from lamina.report.cluster_view import ClusterView

_T = TypeVar("_T")
_SHOWN_NODES = 5
_LACKS_A_RIGHT = re.compile(r'is forbidden: User ".*" cannot [a-z]+ resource ')
"""What Kubernetes says where roles do not allow a request; quotas and admission refuse in other words."""
_RIGHTS = (
    "ask for the cluster role lamina-view, which has the rights of commands that only read; "
    "docs/reference/rbac-commands.md lists those of each command"
)


def with_cluster(kubeconfig: Path | None, operation: Callable[[ConnectedKube], Awaitable[_T]]) -> _T:
    """Connect, run the operation, and close the connection. Raises Outside when the cluster cannot be reached, and
    Refused with what to ask for where a right is missing."""

    from lamina.ports.kube import client

    async def connected() -> _T:
        kube = await client.connect(kubeconfig)
        try:
            return await operation(kube)
        except Refused as error:
            if _LACKS_A_RIGHT.search(str(error)):
                raise Refused(f"{error}; {_RIGHTS}") from error
            raise
        finally:
            await kube.close()

    return asyncio.run(connected())


def chosen_namespace(namespace: str, kubeconfig: Path | None) -> str:
    """The namespace that an option names, or that of the kubeconfig's context. Raises BadInput."""
    from lamina.ports.kube import client

    return namespace or client.context_namespace(kubeconfig)


def confirm(effect: str, kubeconfig: Path | None, *, yes: bool, dry_run: bool) -> bool:
    """Name the cluster and what would happen, and ask. Returns whether to go on. Raises BadInput without an answer."""
    from lamina.ports.kube import client

    typer.echo(f"Cluster: {client.cluster_name(kubeconfig)}")
    typer.echo(effect)
    if dry_run:
        typer.echo("Dry run: nothing was changed.")
        return False
    if yes or answered(lambda: typer.confirm("Continue?", default=False), "--yes or --dry-run"):
        return True
    typer.echo("Nothing was changed.")
    return False


def read_cluster(kubeconfig: Path | None) -> ClusterView:
    """One reading of pods, grants and inventories, with a warning about a configuration that is refused.

    Raises BadInput where Lamina is not installed.
    """
    cluster = with_cluster(kubeconfig, cluster_reader.read)
    warn_of_refused_configuration(cluster)
    return cluster


def warn_of_unread_nodes(cluster: ClusterView) -> None:
    """Print a warning where nodes may not be listed."""
    if cluster.hosts is None:
        typer.echo(
            "Warning: you may not list nodes, so only GPUs and quotas are checked; ask for `lamina-view`", err=True
        )


def warn_of_refused_configuration(cluster: ClusterView) -> None:
    """Print a warning where the configuration in force is not that of the ConfigMap."""
    for warning in warnings(cluster):
        typer.echo(f"Warning: {warning}", err=True)


def silent_agents(use: ClusterUse) -> list[str]:
    """A sentence about nodes whose agents do not say what is used, if there are any."""
    if not use.silent:
        return []
    nodes = sorted(use.silent)
    more = f" and {len(nodes) - _SHOWN_NODES} more" if len(nodes) > _SHOWN_NODES else ""
    return [f"No usage data from {', '.join(nodes[:_SHOWN_NODES])}{more}: {use.silent[nodes[0]]}"]


def warnings(cluster: ClusterView) -> list[str]:
    """Sentences about what a view lacks: the configuration in force is not that of the ConfigMap, or claims of pods may
    not be read."""
    refusal, unread = cluster.config_refusal, cluster.claims.unread
    claims = unread and any(pod["spec"].get("resourceClaims") for pod in cluster.pods)
    return [*([f"the previous configuration is in force: {refusal}"] if refusal else []), *([unread] if claims else [])]
