"""`lamina lab up`, `down`, `status`, `metrics`: an embedded cluster to try, learn and test Lamina."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamina.cli.options import NoHeaders, Output, SortBy
from lamina_lab.cli.fault import fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from lamina_lab.cluster.survey import LabSummary

app = typer.Typer(
    name="lab",
    help="Run an embedded cluster with simulated GPUs. Needs neither a GPU nor Kubernetes.",
    no_args_is_help=True,
)
app.add_typer(fault, name="fault")

Name = Annotated[str, typer.Option("--name", help="Name of the lab. Several labs can run at once.")]


@app.command()
def up(
    name: Name = "default",
    nodes: Annotated[int | None, typer.Option("--nodes", help="Number of nodes. Defaults to 1.")] = None,
    gpus_per_node: Annotated[
        int | None,
        typer.Option("--gpus-per-node", help="Number of GPUs per node. Defaults to 2. 0 makes CPU nodes."),
    ] = None,
    gpu: Annotated[str | None, typer.Option("--gpu", help="GPU model, such as T4. Defaults to V100-SXM2-32GB.")] = None,
    machines: Annotated[
        Path | None, typer.Option("--machines", help="YAML file that describes each node of the lab.")
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", help="Configuration file of Lamina.")] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", help="Also write the kubeconfig to this file.")
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port of the API server. 0 picks a free port.")
    ] = 0,
) -> None:
    """Start a lab and wait until its nodes are Ready."""
    from lamina.cli.terminal import console
    from lamina.errors import BadInput
    from lamina_lab.cluster import plan, up

    if machines is None:
        lab_plan = plan.from_options(
            nodes=plan.DEFAULT_NODES if nodes is None else nodes,
            gpus_per_node=plan.DEFAULT_GPUS_PER_NODE if gpus_per_node is None else gpus_per_node,
            gpu=plan.DEFAULT_GPU if gpu is None else gpu,
            port=port,
        )
    elif (nodes, gpus_per_node, gpu) != (None, None, None):
        raise BadInput("--machines describes every node; leave out --nodes, --gpus-per-node and --gpu")
    else:
        lab_plan = plan.from_file(machines, port=port)
    with console.status("Starting the lab") as spinner:
        lab = up.up(
            name, lab_plan, config_file=config, kubeconfig=kubeconfig, say=console.print, progress=spinner.update
        )
    count = len(lab_plan.nodes)
    console.print(f"Lab {name} is running: {'its node is' if count == 1 else f'its {count} nodes are'} Ready.")
    console.print(f"  export KUBECONFIG={kubeconfig or lab.kubeconfig}", soft_wrap=True)


@app.command()
def down(name: Name = "default") -> None:
    """Stop a lab and remove everything it created."""
    from lamina.cli.terminal import console
    from lamina_lab.cluster import down

    with console.status("Stopping the lab"):
        existed = down.down(name)
    console.print(f"Lab {name} is stopped." if existed else f"There is no lab {name}.")


@app.command()
def status(output: Output = "table", sort_by: SortBy = "", no_headers: NoHeaders = False) -> None:
    """List your labs."""
    from lamina.cli.lists import ListForm, ListKind, check, print_list
    from lamina_lab.cluster import survey

    kind = ListKind(
        row=survey.LabSummary,
        table=lambda rows, wide: _table(rows),
        name=lambda row: row.name,
        title=lambda row: row.name,
        empty="There is no lab. Start one with `lamina lab up`.",
    )
    form = ListForm(output, sort_by, not no_headers)
    check(kind, form)
    print_list(kind, form, survey.survey())


def _table(rows: "Sequence[LabSummary]") -> "Table":
    from rich.table import Table

    table = Table("NAME", "STATE", "API", "NODES", "GPUS", "KUBECONFIG", box=None, pad_edge=False)
    for row in rows:
        table.add_row(row.name, row.state, row.url, str(row.nodes), str(row.gpus), row.kubeconfig)
    return table


@app.command(name="exec")
def execute(
    node: Annotated[str, typer.Argument(help="Name of the node.")],
    command: Annotated[list[str], typer.Argument(help="Program and its arguments, after `--`.")],
    name: Name = "default",
) -> None:
    """Run a program on a node, outside of containers: `lamina lab exec node-0 -- nvidia-smi`."""
    from lamina_lab.cluster import machines

    raise typer.Exit(machines.execute(name, node, command))


@app.command()
def dashboard(
    name: Name = "default",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on. 0 picks a free port.")] = 0,
) -> None:
    """Serve the page of `lamina dashboard` for a lab, with what its containers use."""
    from lamina.cli import dashboard
    from lamina_lab.cluster import metrics
    from lamina_lab.host.directory import lab_directory

    pages = [url for component, url in metrics.urls(name) if component != "controller"]
    dashboard.dashboard(port=port, metrics=pages, kubeconfig=lab_directory(name).kubeconfig)


@app.command()
def metrics(name: Name = "default") -> None:
    """List the metrics URL of each component."""
    from rich.table import Table

    from lamina.cli.terminal import console, print_table
    from lamina_lab.cluster import metrics

    table = Table("COMPONENT", "METRICS", box=None, pad_edge=False)
    for component, url in metrics.urls(name):
        table.add_row(component, url)
    print_table(console, table)
