"""Running an operation against a cluster, which the same options name for every command.

The client is imported when a command connects, so that the help of a command, and a mistake in it, do not wait for it.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import typer

from lamina.cli import running_clusters
from lamina.cli.options import Kubeconfig, KubeContext, lamina_namespace, with_options_of
from lamina.cli.terminal import answered, say
from lamina.core.component_names import DEFAULT_NAMESPACE, documentation
from lamina.errors import BadInput, NoKubeconfig, Outside
from lamina.operations.installed import installed_namespace
from lamina.ports.kube import ConnectedKube
from lamina.ports.kube.errors import LacksRight, Refused

_T = TypeVar("_T")
_RIGHTS = (
    "ask for the cluster role lamina-view, which has the rights of commands that only read; "
    f"{documentation('reference/rbac-commands.md')} lists those of each command"
)


class ClusterChoice(NamedTuple):
    """The cluster that options name: a kubeconfig and a context in it, each by default the one that kubectl uses."""

    kubeconfig: Path | None = None
    context: str = ""


def cluster_command(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options that name a cluster after its own. `command` gets a ClusterChoice first."""

    def on_cluster(kubeconfig: Kubeconfig = None, context: KubeContext = "", **own: Any) -> None:
        command(ClusterChoice(kubeconfig, context), **own)

    return with_options_of(on_cluster, command)


def with_cluster(choice: ClusterChoice, operation: Callable[[ConnectedKube], Awaitable[_T]]) -> _T:
    """Connect, run an operation that does not depend on where Lamina is installed, and close the connection. Raises
    Outside when the cluster cannot be reached, and LacksRight with what to ask for where a right is missing."""

    from lamina.ports.kube import client

    async def connected() -> _T:
        kube = await client.connect(choice.kubeconfig, context=choice.context)
        try:
            return await operation(kube)
        except LacksRight as error:
            raise LacksRight(f"{error}; {_RIGHTS}") from error
        finally:
            await kube.close()

    return asyncio.run(connected())


def with_installation(choice: ClusterChoice, operation: Callable[[ConnectedKube], Awaitable[_T]]) -> _T:
    """The same for an operation in the namespace of Lamina, which is found first unless this invocation names it."""

    async def found(kube: ConnectedKube) -> _T:
        kube.lamina_namespace = lamina_namespace() or await _found(kube)
        return await operation(kube)

    return with_cluster(choice, found)


async def _found(kube: ConnectedKube) -> str:
    """Where Lamina is installed; the default where that cannot be known. Raises Outside."""
    try:
        return await installed_namespace(kube) or DEFAULT_NAMESPACE
    except Refused as error:
        hint = "--lamina-namespace or LAMINA_NAMESPACE names another one"
        say(f"Warning: Lamina is taken to be in {DEFAULT_NAMESPACE}, because {error}; {hint}", err=True)
        return DEFAULT_NAMESPACE


def with_cluster_or_here(
    choice: ClusterChoice,
    operation: Callable[[ConnectedKube], Awaitable[_T]],
    here: Callable[[], Coroutine[Any, Any, _T]],
    *,
    local: bool,
) -> _T:
    """The same with an installation, or with this machine: where `local` asks for it, and where no cluster is
    configured. One that an option or KUBECONFIG names has to be there, and so has a driver or a run where there is no
    cluster."""
    if local:
        if choice != ClusterChoice():
            option = "--kubeconfig" if choice.kubeconfig else "--context"
            raise BadInput(f"--local is about this machine, and {option} names a cluster; leave out one of them")
        return asyncio.run(here())
    try:
        return with_installation(choice, operation)
    except NoKubeconfig as error:
        if choice != ClusterChoice() or os.environ.get("KUBECONFIG"):
            raise
        try:
            return asyncio.run(here())
        except Outside as nothing:
            raise NoKubeconfig(f"{error}, and {nothing}") from error


def here_instead(machine: str, *, local: bool) -> str:
    """A sentence that says that this machine is shown, and why."""
    why = "" if local else f", because there is no kubeconfig{running_clusters.hint()}"
    return f"This is machine {machine} without Kubernetes{why}."


def chosen_namespace(namespace: str, choice: ClusterChoice) -> str:
    """The namespace that an option names, or that of the kubeconfig's context. Raises BadInput."""
    from lamina.ports.kube import client

    return namespace or client.context_namespace(choice.kubeconfig, choice.context)


def cluster_name(choice: ClusterChoice) -> str:
    """The cluster that commands act on, for people. Raises BadInput."""
    from lamina.ports.kube import client

    return client.cluster_name(choice.kubeconfig, choice.context)


def cluster_line(choice: ClusterChoice) -> str:
    """The line that names the cluster of a command which changes much. Raises BadInput."""
    return f"Cluster: {cluster_name(choice)}"


def confirm(effect: str, choice: ClusterChoice, *, yes: bool, dry_run: bool) -> bool:
    """Name the cluster and what would happen, and ask. Returns whether to go on. Raises BadInput without an answer."""
    say(cluster_line(choice))
    say(effect)
    if dry_run:
        say("Dry run: nothing was changed.")
        return False
    if yes or answered(lambda: typer.confirm("Continue?", default=False), "--yes or --dry-run"):
        return True
    say("Nothing was changed.")
    return False
