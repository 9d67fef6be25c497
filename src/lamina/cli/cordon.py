"""`lamina cordon gpu` and `lamina uncordon gpu`: stop and resume placing work on one GPU."""

from typing import Annotated, Any

import typer.core

from lamina.cli.connection import ClusterChoice, cluster_command, with_cluster
from lamina.cli.terminal import say
from lamina.defragmentation.cordon import set_cordoned
from lamina.errors import BadInput

Node = Annotated[str, typer.Argument(help="Name of the node.")]
WhichGpu = Annotated[str, typer.Argument(help="Index of the GPU on the node, or its UUID.", metavar="GPU")]


class _WithGpu(typer.core.TyperGroup):
    """Names the whole command to those who leave out the word `gpu`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            given = [*args, "GPU"] if len(args) == 1 else args
            command = f"lamina {ctx.info_name}"
            raise BadInput(f"{command} is about one GPU of a node; write `{command} gpu {' '.join(given)}`")
        return super().resolve_command(ctx, args)


cordon = typer.Typer(
    cls=_WithGpu, no_args_is_help=True, help="Stop placing new work on a GPU. Running containers are not affected."
)
uncordon = typer.Typer(cls=_WithGpu, no_args_is_help=True, help="Place work on a cordoned GPU again.")


@cordon.callback()
@uncordon.callback()
def _only_gpus() -> None:
    """Typer drops the name of a single command unless there is a callback."""


@cordon.command("gpu")
@cluster_command
def cordon_gpu(choice: ClusterChoice, node: Node, gpu: WhichGpu) -> None:
    """Stop placing new work on one GPU of a node. Running containers are not affected."""
    uuid = with_cluster(choice, lambda kube: set_cordoned(kube, node, gpu, cordoned=True))
    say(f"GPU {uuid} of node {node} is cordoned.")


@uncordon.command("gpu")
@cluster_command
def uncordon_gpu(choice: ClusterChoice, node: Node, gpu: WhichGpu) -> None:
    """Place work on a cordoned GPU again."""
    uuid = with_cluster(choice, lambda kube: set_cordoned(kube, node, gpu, cordoned=False))
    say(f"GPU {uuid} of node {node} is no longer cordoned.")
