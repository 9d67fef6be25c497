"""`lamina doctor`: whether a cluster has what Lamina needs, and how to fix what is missing."""

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Annotated

import typer
from rich.table import Table

from lamina.cli.connection import ClusterChoice, cluster_command, here_instead, with_cluster_or_here
from lamina.cli.exit_codes import ExitCode
from lamina.cli.lists import ListForm, ListKind, ListReading, check, print_list
from lamina.cli.options import Local, NoHeaders, Output, SortBy
from lamina.cli.terminal import say
from lamina.errors import BadInput
from lamina.operations.doctor.examine import examine
from lamina.operations.doctor.finding import Finding, State
from lamina.operations.doctor.machine import examine_machine
from lamina.operations.local_machine import read_machine, read_usable_machine
from lamina.ports.kube import ConnectedKube


@cluster_command
def doctor(
    choice: ClusterChoice,
    everything: Annotated[bool, typer.Option("--all", help="List checks that found nothing too.")] = False,
    failed: Annotated[bool, typer.Option("--failed", help="List only checks that failed.")] = False,
    output: Output = "table",
    sort_by: SortBy = "",
    no_headers: NoHeaders = False,
    local: Local = False,
) -> None:
    """Check driver, runtime, Kubernetes, webhook, agents, scheduler and other plugins, and suggest fixes.

    Prints how many checks found what, then those that failed or warn. Forms for programs have all checks, unless
    --failed is set. Exits with 1 if a check failed.

    Without a cluster, what `lamina run` needs is checked on this machine: driver, GPUs, and that a limit is seen.
    """
    if everything and failed:
        raise BadInput("--all and --failed exclude each other")
    kind = ListKind(
        row=Finding,
        table=lambda rows, wide: _table(rows),
        name=lambda row: row.check,
        title=lambda row: row.check,
        empty="Nothing to do.",
        notes=lambda rows: (f"{row.check}: {row.fix}." for row in rows if row.fix),
    )
    form = ListForm(output, sort_by, not no_headers)
    check(kind, form)

    async def of_cluster(kube: ConnectedKube) -> ListReading[Finding]:
        return ListReading(await examine(kube))

    async def here() -> ListReading[Finding]:
        machine = await asyncio.to_thread(read_machine if local else read_usable_machine)
        findings = await asyncio.to_thread(examine_machine, machine)
        return ListReading(findings, [here_instead(machine.node, local=local)])

    findings, said, _ = with_cluster_or_here(choice, of_cluster, here, local=local)
    people = output in ("table", "wide")
    shown = [each for each in findings if each.state in _shown(everything or not people, failed)]
    if people:
        say(_summary(findings))
    if shown or said or not people or everything:
        print_list(kind, form, shown, said)
    if any(finding.state is State.FAILED for finding in findings):
        raise typer.Exit(ExitCode.NO)


def _shown(everything: bool, failed: bool) -> Collection[State]:
    if failed:
        return (State.FAILED,)
    return tuple(State) if everything else (State.FAILED, State.WARNING)


def _summary(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.state for finding in findings)
    parts = ", ".join(f"{counts[state]} {state.value}" for state in reversed(State))
    return f"{len(findings)} checks: {parts}."


def _table(rows: Sequence[Finding]) -> Table:
    table = Table("CHECK", "STATE", "FOUND", box=None, pad_edge=False)
    for finding in rows:
        table.add_row(finding.check, finding.state.value, finding.found)
    return table
