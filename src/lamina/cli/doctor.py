"""`lamina doctor`: whether a cluster has what Lamina needs, and how to fix what is missing."""

from collections.abc import Sequence

import typer
from rich.table import Table

from lamina.cli.connection import with_cluster
from lamina.cli.exit_codes import ExitCode
from lamina.cli.lists import ListForm, ListKind, check, print_list
from lamina.cli.options import Kubeconfig, NoHeaders, Output, SortBy
from lamina.operations.doctor.examine import examine
from lamina.operations.doctor.finding import Finding, State


def doctor(
    output: Output = "table", sort_by: SortBy = "", no_headers: NoHeaders = False, kubeconfig: Kubeconfig = None
) -> None:
    """Check driver, runtime, Kubernetes, webhook, agents, scheduler and other plugins, and suggest fixes."""
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
    findings = with_cluster(kubeconfig, examine)
    print_list(kind, form, findings)
    if any(finding.state is State.FAILED for finding in findings):
        raise typer.Exit(ExitCode.NO)


def _table(rows: Sequence[Finding]) -> Table:
    table = Table("CHECK", "STATE", "FOUND", box=None, pad_edge=False)
    for finding in rows:
        table.add_row(finding.check, finding.state.value, finding.found)
    return table
