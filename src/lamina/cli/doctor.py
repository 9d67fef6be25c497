"""`lamina doctor`: whether a cluster has what Lamina needs, and how to fix what is missing."""

import asyncio
from collections.abc import Sequence

import typer
from rich.table import Table

from lamina.cli.connection import here_instead, with_cluster_or_here
from lamina.cli.exit_codes import ExitCode
from lamina.cli.lists import ListForm, ListKind, ListReading, check, print_list
from lamina.cli.options import Kubeconfig, Local, NoHeaders, Output, SortBy
from lamina.errors import Outside
from lamina.operations.doctor.examine import examine
from lamina.operations.doctor.finding import Finding, State
from lamina.operations.doctor.machine import examine_machine
from lamina.operations.local_machine import read_machine
from lamina.ports.kube import ConnectedKube


def doctor(
    output: Output = "table",
    sort_by: SortBy = "",
    no_headers: NoHeaders = False,
    kubeconfig: Kubeconfig = None,
    local: Local = False,
) -> None:
    """Check driver, runtime, Kubernetes, webhook, agents, scheduler and other plugins, and suggest fixes.

    Without a cluster, what `lamina run` needs is checked on this machine: driver, GPUs, and that a limit is seen.
    """
    kind = ListKind(
        row=Finding,
        table=lambda rows, wide: _table(rows),
        name=lambda row: row.check,
        title=lambda row: row.check,
        empty="Nothing was checked.",
        notes=lambda rows: (f"{row.check}: {row.fix}." for row in rows if row.fix),
    )
    form = ListForm(output, sort_by, not no_headers)
    check(kind, form)

    async def of_cluster(kube: ConnectedKube) -> ListReading[Finding]:
        return ListReading(await examine(kube))

    async def here() -> ListReading[Finding]:
        machine = await asyncio.to_thread(read_machine)
        if machine.nothing and not local:
            raise Outside(machine.nothing)
        findings = await asyncio.to_thread(examine_machine, machine)
        return ListReading(findings, [here_instead(machine.node, local=local)])

    findings, said, _ = with_cluster_or_here(kubeconfig, of_cluster, here, local=local)
    print_list(kind, form, findings, said)
    if any(finding.state is State.FAILED for finding in findings):
        raise typer.Exit(ExitCode.NO)


def _table(rows: Sequence[Finding]) -> Table:
    table = Table("CHECK", "STATE", "FOUND", box=None, pad_edge=False)
    for finding in rows:
        table.add_row(finding.check, finding.state.value, finding.found)
    return table
