"""`lamina advise`: which mechanism lets a workload share a GPU, asked by options or by questions."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from lamina.model.mechanisms import Advice

Flag = bool | None


def choose(
    context: typer.Context,
    table: Annotated[bool, typer.Option("--table", help="Print the comparison of all mechanisms instead.")] = False,
    one_program: Annotated[
        Flag, typer.Option("--one-program/--several", help="One program alone uses the GPU.", show_default=False)
    ] = None,
    vms: Annotated[
        Flag, typer.Option("--vms/--no-vms", help="Tenants need virtual machines.", show_default=False)
    ] = None,
    isolated: Annotated[
        Flag,
        typer.Option(
            "--isolated/--no-isolated", help="Neighbours must not touch it: isolation by hardware.", show_default=False
        ),
    ] = None,
    card: Annotated[str, typer.Option("--card", help="A card that MIG divides, named as by `lamina mig`.")] = "",
    concurrent: Annotated[
        Flag,
        typer.Option("--concurrent/--no-concurrent", help="Kernels of several programs at once.", show_default=False),
    ] = None,
    memory: Annotated[
        int | None, typer.Option("--memory", min=0, help="MiB that it needs; 0 is not known.", show_default=False)
    ] = None,
    cores: Annotated[int, typer.Option("--cores", min=0, max=100, help="Percent of the GPU's time; 0 is any.")] = 0,
) -> None:
    """Say what a person could do; nothing is done. Alone: which way of sharing a GPU suits a workload."""
    if context.invoked_subcommand is not None:
        return
    from lamina.cli.terminal import console
    from lamina.errors import BadInput
    from lamina.model.mechanisms import Needs, advise
    from lamina.model.mig_cards import MIG_CARDS

    if table:
        _print_table()
        return
    if card and card not in MIG_CARDS:
        raise BadInput(f"--card is {card!r}; cards that MIG divides are {', '.join(MIG_CARDS)}")
    one_program = _ask(one_program, "Does one program alone use the GPU?")
    vms = _ask(vms, "Do tenants need virtual machines?") if not one_program else False
    isolated = (
        _ask(isolated, "Must no neighbour touch its speed or see its faults?") if not (one_program or vms) else False
    )
    settled = one_program or vms or isolated
    concurrent = _ask(concurrent, "Should small kernels of several programs run at once?") if not settled else False
    if memory is None and not (one_program or vms or concurrent):
        memory = typer.prompt("How many MiB does it need? (0: not known)", type=int, default=0)
    needs = Needs(
        one_program=one_program,
        virtual_machines=vms,
        hardware=isolated,
        card=card,
        memory_mib=memory or 0,
        cores=cores,
        concurrent=concurrent,
        unknown=not memory and not cores,
    )
    console.print(text(advise(needs)), soft_wrap=True, markup=False, highlight=False)


def text(advice: "Advice") -> str:
    """The advice as people read it, the manifest included."""
    import yaml

    lines = [f"{advice.mechanism.value}: {advice.reason}."]
    if advice.before:
        lines.append(f"First: {advice.before}.")
    if advice.limits:
        container = {"name": "main", "image": "IMAGE", "resources": {"limits": dict(advice.limits)}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "NAME"}, "spec": {"containers": [container]}}
        lines += ["", yaml.safe_dump(pod, sort_keys=False).rstrip()]
    return "\n".join(lines)


def _ask(given: Flag, question: str) -> bool:
    return typer.confirm(question, default=False) if given is None else given


def _print_table() -> None:
    from rich.table import Table

    from lamina.cli.terminal import console, print_table
    from lamina.model.mechanisms import TABLE

    columns = next(iter(TABLE.values())).keys()
    table = Table("", *(each.value for each in columns), box=None, pad_edge=False)
    for row, cells in TABLE.items():
        table.add_row(row, *cells.values())
    print_table(console, table)
