"""`lamina lab fault`: faults of simulated GPUs, to try how pods and nodes react."""

from typing import Annotated

import typer

fault = typer.Typer(name="fault", help="Inject a fault into a simulated GPU.", no_args_is_help=True)

Name = Annotated[str, typer.Option("--name", help="Name of the lab.")]
Node = Annotated[str, typer.Option("--node", help="Name of the node.")]
Gpu = Annotated[str, typer.Option("--gpu", help="Index or UUID of the GPU.")]


@fault.command()
def xid(
    number: Annotated[int, typer.Argument(min=1, help="XID number, such as 79.")],
    node: Node = "node-0",
    gpu: Gpu = "0",
    name: Name = "default",
) -> None:
    """Report a driver error (XID) for the GPU."""
    from lamina.cli.terminal import console
    from lamina_lab.cluster.machines import target

    faulty = target(name, node, gpu)
    faulty.report(number)
    console.print(f"The driver of {node} reported XID {number} for {faulty.uuid}.", soft_wrap=True)


@fault.command()
def lose(node: Node = "node-0", gpu: Gpu = "0", name: Name = "default") -> None:
    """Remove the GPU from the bus: NVML no longer lists it, and CUDA calls on it fail."""
    from lamina.cli.terminal import console
    from lamina_lab.cluster.machines import target

    faulty = target(name, node, gpu)
    faulty.lose()
    console.print(f"{faulty.uuid} has fallen off the bus of {node}.", soft_wrap=True)


@fault.command()
def restore(node: Node = "node-0", gpu: Gpu = "0", name: Name = "default") -> None:
    """Bring back a GPU that was removed from the bus."""
    from lamina.cli.terminal import console
    from lamina_lab.cluster.machines import target

    restored = target(name, node, gpu)
    restored.restore()
    console.print(f"{restored.uuid} is back on {node}.", soft_wrap=True)
