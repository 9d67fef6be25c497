"""`lamina lab up`, `down`, `status`, `metrics`: the embedded cluster, for trying, learning and testing."""

from pathlib import Path
from typing import Annotated

import typer

from lamina.cli.fault import fault

app = typer.Typer(
    name="lab", help="An embedded cluster with simulated GPUs: no GPU, no Kubernetes.", no_args_is_help=True
)
app.add_typer(fault, name="fault")

Name = Annotated[str, typer.Option("--name", help="Which lab; several can run side by side.")]


@app.command()
def up(
    name: Name = "default",
    nodes: Annotated[int | None, typer.Option("--nodes", help="How many nodes.", show_default="1")] = None,
    gpus_per_node: Annotated[
        int | None, typer.Option("--gpus-per-node", help="GPUs on each node; 0 is a CPU node.", show_default="2")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="Which card, such as T4.", show_default="V100-SXM2-32GB")
    ] = None,
    machines: Annotated[
        Path | None, typer.Option("--machines", help="A YAML file that describes each node instead.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="Lamina's configuration; the default where not given.")
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option("--kubeconfig", help="Write the kubeconfig here as well.")] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="The API server's port; 0 takes a free one.")
    ] = 0,
) -> None:
    """Start a lab and return when its API answers and its nodes are Ready."""
    from lamina.cli.terminal import console
    from lamina.errors import BadInput
    from lamina.lab import plan, up

    if machines is None:
        wanted = plan.from_options(
            nodes=plan.DEFAULT_NODES if nodes is None else nodes,
            gpus_per_node=plan.DEFAULT_GPUS_PER_NODE if gpus_per_node is None else gpus_per_node,
            gpu=plan.DEFAULT_GPU if gpu is None else gpu,
            port=port,
        )
    elif (nodes, gpus_per_node, gpu) != (None, None, None):
        raise BadInput("--machines describes every node; leave out --nodes, --gpus-per-node and --gpu")
    else:
        wanted = plan.from_file(machines, port=port)
    with console.status("Starting the lab") as spinner:
        lab = up.up(name, wanted, config_file=config, kubeconfig=kubeconfig, say=console.print, progress=spinner.update)
    nodes_ready = "its node is Ready" if len(wanted.nodes) == 1 else f"its {len(wanted.nodes)} nodes are Ready"
    console.print(f"Lab {name} is up: {nodes_ready}.")
    console.print(f"  export KUBECONFIG={kubeconfig or lab.kubeconfig}", soft_wrap=True)


@app.command()
def down(name: Name = "default") -> None:
    """Stop a lab and remove all that it made."""
    from lamina.cli.terminal import console
    from lamina.lab import down

    with console.status("Stopping the lab"):
        found = down.down(name)
    console.print(f"Lab {name} is down." if found else f"There is no lab {name}.")


@app.command()
def status() -> None:
    """List this user's labs."""
    from rich.table import Table

    from lamina.cli.terminal import console, print_table
    from lamina.lab import survey

    rows = survey.survey()
    if not rows:
        console.print("There is no lab. `lamina lab up` starts one.")
        return
    table = Table("NAME", "STATE", "API", "NODES", "GPUS", "KUBECONFIG", box=None, pad_edge=False)
    for row in rows:
        table.add_row(row.name, row.state, row.url, str(row.nodes), str(row.gpus), str(row.kubeconfig))
    print_table(console, table)


@app.command()
def metrics(name: Name = "default") -> None:
    """Tell where Prometheus would read: the URL of each part that serves metrics."""
    from rich.table import Table

    from lamina.cli.terminal import console, print_table
    from lamina.lab import metrics

    table = Table("PART", "METRICS", box=None, pad_edge=False)
    for part, url in metrics.urls(name):
        table.add_row(part, url)
    print_table(console, table)
