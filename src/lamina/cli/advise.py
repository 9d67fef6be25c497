"""`lamina advise`: a mechanism for a workload, pods to move so that GPUs become idle, and what is unused."""

from collections.abc import Sequence
from typing import Annotated

import typer
import yaml
from rich.measure import Measurement
from rich.table import Table

from lamina.cli import use_advice
from lamina.cli.cluster_warnings import read_cluster
from lamina.cli.connection import ClusterChoice, cluster_command
from lamina.cli.lists import ListForm, ListKind, check, print_list
from lamina.cli.options import NoHeaders, SortBy
from lamina.cli.terminal import answered, console, print_table
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.quantities import parse_memory_mib
from lamina.errors import BadInput
from lamina.operations.advise import mechanisms
from lamina.operations.advise.defrag import NO_MOVE, MoveRow, advice, move_rows
from lamina.operations.advise.mechanisms import TABLE, Advice, Needs

Flag = bool | None
_OPTIONS = "the options --one-program, --vms, --renders, --isolated, --concurrent and --memory, or their opposites"

advise = typer.Typer(invoke_without_command=True)
advise.command("shares")(use_advice.shares)
advise.command("idle")(use_advice.idle)


@advise.callback()
def mechanism(
    context: typer.Context,
    table: Annotated[bool, typer.Option("--table", help="Print the comparison of all mechanisms instead.")] = False,
    one_program: Annotated[
        Flag, typer.Option("--one-program/--several", help="Only one program uses the GPU.", show_default=False)
    ] = None,
    vms: Annotated[
        Flag, typer.Option("--vms/--no-vms", help="Tenants need virtual machines.", show_default=False)
    ] = None,
    renders: Annotated[
        Flag, typer.Option("--renders/--no-renders", help="It renders, with Vulkan or OpenGL.", show_default=False)
    ] = None,
    isolated: Annotated[
        Flag,
        typer.Option(
            "--isolated/--no-isolated", help="Neighbors must not affect it: hardware isolation.", show_default=False
        ),
    ] = None,
    card: Annotated[str, typer.Option("--card", help="Card with MIG, as in `lamina mig profiles`.")] = "",
    concurrent: Annotated[
        Flag,
        typer.Option(
            "--concurrent/--no-concurrent", help="Kernels of several programs run at once.", show_default=False
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="Memory that it needs, such as 12Gi. 0 means unknown.", show_default=False),
    ] = None,
    cores: Annotated[
        int, typer.Option("--cores", min=0, max=100, help="Percent of the GPU's time that it needs. 0 means any.")
    ] = 0,
) -> None:
    """Suggest a way to share GPUs for a workload; subcommands give other advice. Nothing is changed."""
    if context.invoked_subcommand is not None:
        return
    if table:
        _print_table()
        return
    if card and card not in MIG_CARDS:
        raise BadInput(f"--card must be one of {', '.join(MIG_CARDS)}, got {card!r}")
    one_program = _ask(one_program, "Does only one program use the GPU?")
    vms = _ask(vms, "Do tenants need virtual machines?") if not one_program else False
    alone = one_program or vms
    renders = _ask(renders, "Does it render, with Vulkan or OpenGL?") if not alone else False
    alone = alone or renders
    isolated = _ask(isolated, "Must neighbors not affect its speed, nor their faults reach it?") if not alone else False
    settled = alone or isolated
    concurrent = _ask(concurrent, "Should small kernels of several programs run at once?") if not settled else False
    if memory is None and not (alone or concurrent):
        memory = answered(
            lambda: str(typer.prompt("How much memory does it need, such as 12Gi? (0: unknown)", default="0")), _OPTIONS
        )
    memory_mib = 0 if memory in (None, "0") else parse_memory_mib(memory, where="--memory")
    needs = Needs(
        one_program=one_program,
        virtual_machines=vms,
        renders=renders,
        hardware=isolated,
        card=card,
        memory_mib=memory_mib,
        cores=cores,
        concurrent=concurrent,
        unknown=not memory_mib and not cores,
    )
    console.print(_text(mechanisms.advise(needs)), soft_wrap=True, markup=False, highlight=False)


@advise.command("defrag")
@cluster_command
def defrag(
    choice: ClusterChoice,
    moves: Annotated[int, typer.Option("--moves", min=1, help="Maximum number of pods to move.")] = 20,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="Form instead of sentences: table, wide, json, yaml or name.", show_default=False
        ),
    ] = "",
    sort_by: SortBy = "",
    no_headers: NoHeaders = False,
) -> None:
    """Suggest which pods to move so that GPUs become idle."""
    kind = ListKind(
        row=MoveRow,
        table=lambda rows, wide: _move_table(rows),
        name=lambda row: row.pod,
        title=lambda row: row.pod,
        empty=NO_MOVE,
    )
    form = ListForm(output or "table", sort_by, not no_headers)
    check(kind, form)
    cluster = read_cluster(choice)
    if output or sort_by or no_headers:
        print_list(kind, form, move_rows(cluster, moves))
        return
    for line in advice(cluster, moves):
        console.print(line, markup=False, soft_wrap=True)


def _move_table(rows: Sequence[MoveRow]) -> Table:
    table = Table("POD", "FROM", "GPU", "TO", "GPU", "FREES", box=None, pad_edge=False)
    for row in rows:
        gpus = [", ".join(map(str, each)) for each in (row.from_gpus, row.to_gpus)]
        frees = f"GPU {row.frees_gpu} of {row.frees_node}"
        table.add_row(row.pod, row.from_node, gpus[0], row.to_node, gpus[1], frees)
    return table


def _text(advice: Advice) -> str:
    """The advice with its manifest."""
    lines = [f"{advice.mechanism.value}: {advice.reason}."]
    if advice.before:
        lines.append(f"First: {advice.before}.")
    if advice.limits:
        container = {"name": "main", "image": "IMAGE", "resources": {"limits": dict(advice.limits)}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "NAME"}, "spec": {"containers": [container]}}
        lines += ["", yaml.safe_dump(pod, sort_keys=False).rstrip()]
    return "\n".join(lines)


def _ask(answer: Flag, question: str) -> bool:
    return answered(lambda: typer.confirm(question, default=False), _OPTIONS) if answer is None else answer


def _print_table() -> None:
    """One column for each mechanism, or one block where the terminal is too narrow for that."""
    names = next(iter(TABLE.values())).keys()
    table = Table("", *(mechanism.value for mechanism in names), box=None, pad_edge=False)
    for row, cells in TABLE.items():
        table.add_row(row, *cells.values())
    wide = console.options.update_width(10_000)
    if Measurement.get(console, wide, table).maximum <= console.width:
        print_table(console, table)
        return
    for mechanism in names:
        console.print(f"{mechanism.value}:", markup=False)
        block = Table(box=None, pad_edge=False, show_header=False)
        for row, cells in TABLE.items():
            block.add_row(f"  {row}", cells[mechanism])
        block.columns[0].no_wrap = True
        console.print(block)
