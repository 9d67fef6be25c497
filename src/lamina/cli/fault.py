"""`lamina lab fault`: what befalls a simulated GPU, to see what becomes of pods and nodes."""

from typing import Annotated

import typer

fault = typer.Typer(name="fault", help="Let something befall a GPU of a lab.", no_args_is_help=True)

Name = Annotated[str, typer.Option("--name", help="Which lab.")]
Node = Annotated[str, typer.Option("--node", help="The GPU's node.")]
Gpu = Annotated[str, typer.Option("--gpu", help="Index on the node, or UUID.")]


@fault.command()
def xid(
    number: Annotated[int, typer.Argument(min=1, help="The error's number, such as 79.")],
    node: Node = "node-0",
    gpu: Gpu = "0",
    name: Name = "default",
) -> None:
    """Let the driver report an error (XID) of the GPU."""
    from lamina.cli.terminal import console
    from lamina.lab.faults import target

    found = target(name, node, gpu)
    found.report(number)
    console.print(f"The driver of {node} reports XID {number} for {found.uuid}.", soft_wrap=True)


@fault.command()
def lose(node: Node = "node-0", gpu: Gpu = "0", name: Name = "default") -> None:
    """Let the GPU fall off the bus: NVML does not list it, CUDA fails on it."""
    from lamina.cli.terminal import console
    from lamina.lab.faults import target

    found = target(name, node, gpu)
    found.lose()
    console.print(f"{found.uuid} has fallen off the bus of {node}.", soft_wrap=True)


@fault.command()
def restore(node: Node = "node-0", gpu: Gpu = "0", name: Name = "default") -> None:
    """Bring a lost GPU back."""
    from lamina.cli.terminal import console
    from lamina.lab.faults import target

    found = target(name, node, gpu)
    found.restore()
    console.print(f"{found.uuid} is back on {node}.", soft_wrap=True)
