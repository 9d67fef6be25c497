"""`lamina resize`: more or less GPU memory and compute for a running pod."""

from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.options import Kubeconfig, Namespace

if TYPE_CHECKING:
    from lamina.ports.kube.client import KubeClient


def resize(
    pod: Annotated[str, typer.Argument(help="Name of the pod.")],
    container: Annotated[
        str, typer.Option("--container", "-c", help="Container. Defaults to the first one.", show_default=False)
    ] = "",
    memory: Annotated[int | None, typer.Option("--memory", min=1, help="MiB of each of its GPUs.")] = None,
    cores: Annotated[int | None, typer.Option("--cores", min=1, max=100, help="Percent of each GPU's time.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has the new size.")] = False,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
) -> None:
    """Give a running container more or less of its GPUs, without a restart."""
    from lamina.cli.connection import chosen_namespace, with_cluster
    from lamina.operations import resize as operation
    from lamina.ports.clock import SystemClock

    chosen = chosen_namespace(namespace, kubeconfig)

    async def resized(kube: "KubeClient") -> str:
        wish = await operation.ask(kube, chosen, pod, container, memory_mib=memory, cores=cores)
        return await operation.wait(kube, SystemClock(), chosen, pod, wish) if wait else f"asked for {wish}"

    typer.echo(f"Pod {chosen}/{pod}: {with_cluster(kubeconfig, resized)}.")
