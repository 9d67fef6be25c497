"""`lamina resize`: more or less GPU memory and compute for running pods."""

from typing import Annotated

import typer

from lamina.cli.connection import ClusterChoice, chosen_namespace, cluster_command, with_installation
from lamina.cli.options import Namespace, one_of
from lamina.cli.terminal import say
from lamina.core.quantities import parse_memory_mib
from lamina.operations import resize as operation
from lamina.ports.clock import SystemClock
from lamina.ports.kube import ConnectedKube


@cluster_command
def resize(
    choice: ClusterChoice,
    which: Annotated[str, typer.Argument(metavar="POD|KIND/NAME", help="A pod, or a workload such as deployment/web.")],
    container: Annotated[
        str, typer.Option("--container", "-c", help="Container. Defaults to the first one.", show_default=False)
    ] = "",
    memory: Annotated[
        str, typer.Option("--memory", help="Memory of each of its GPUs, such as 12Gi or 12288Mi.", show_default=False)
    ] = "",
    cores: Annotated[int | None, typer.Option("--cores", min=1, max=100, help="Percent of each GPU's time.")] = None,
    when_held: Annotated[
        str,
        typer.Option("--when-held", help="If programs hold more memory than the new size: refuse or wait."),
    ] = "refuse",
    rollout: Annotated[
        bool, typer.Option("--rollout", help="Change a workload's template although that replaces its pods.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until pods have the new size.")] = False,
    namespace: Namespace = "",
) -> None:
    """Give running containers more or less of their GPUs, without a restart."""
    one_of(when_held, ("refuse", "wait"), "--when-held")
    chosen = chosen_namespace(namespace, choice)
    memory_mib = parse_memory_mib(memory, where="--memory") if memory else None
    size = operation.Resize(container, memory_mib, cores, waits=when_held == "wait", rollout=rollout)

    async def resized(kube: ConnectedKube) -> None:
        if "/" in which:
            lines = operation.resize_workload(kube, SystemClock(), chosen, which, size, wait=wait, say=_say)
            async for line in lines:
                say(line)
            return
        say(await operation.resize_pod(kube, SystemClock(), chosen, which, size, wait=wait, say=_say))

    with_installation(choice, resized)


def _say(progress: str) -> None:
    """On standard error, next to the answer."""
    say(progress, err=True)
