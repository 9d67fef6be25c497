"""Running an operation against a cluster.

The client is imported when a command connects, so that the help of a command, and a mistake in it, do not wait for it.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import typer

from lamina.cli import running_clusters
from lamina.cli.terminal import answered
from lamina.errors import BadInput, NoKubeconfig, Outside
from lamina.ports.kube import ConnectedKube
from lamina.ports.kube.errors import Refused

_T = TypeVar("_T")
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


def with_cluster_or_here(
    kubeconfig: Path | None,
    operation: Callable[[ConnectedKube], Awaitable[_T]],
    here: Callable[[], Coroutine[Any, Any, _T]],
    *,
    local: bool,
) -> _T:
    """The same with a cluster, or with this machine: where `local` asks for it, and where no cluster is configured. One
    that an option or KUBECONFIG names has to be there, and so has a driver or a run where there is no cluster."""
    if local:
        if kubeconfig is not None:
            raise BadInput("--local is about this machine, and --kubeconfig names a cluster; leave out one of them")
        return asyncio.run(here())
    try:
        return with_cluster(kubeconfig, operation)
    except NoKubeconfig as error:
        if kubeconfig is not None or os.environ.get("KUBECONFIG"):
            raise
        try:
            return asyncio.run(here())
        except Outside as nothing:
            raise NoKubeconfig(f"{error}, and {nothing}") from error


def here_instead(machine: str, *, local: bool) -> str:
    """A sentence that says that this machine is shown, and why."""
    why = "" if local else f", because there is no kubeconfig{running_clusters.hint()}"
    return f"This is machine {machine} without Kubernetes{why}."


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
