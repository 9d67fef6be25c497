"""`lamina doctor`: whether a cluster has what Lamina needs, and how to fix what is missing."""

import typer

from lamina.cli.exit_codes import ExitCode
from lamina.cli.options import Kubeconfig


def doctor(kubeconfig: Kubeconfig = None) -> None:
    """Check driver, runtime, Kubernetes, webhook, agents, scheduler and other plugins, and suggest fixes."""
    from rich.table import Table

    from lamina.cli.connection import with_cluster
    from lamina.cli.terminal import console, print_table
    from lamina.operations.doctor.examine import examine
    from lamina.operations.doctor.finding import State

    findings = with_cluster(kubeconfig, examine)
    table = Table("CHECK", "STATE", "FOUND", box=None, pad_edge=False)
    for finding in findings:
        table.add_row(finding.check, finding.state.value, finding.found)
    print_table(console, table)
    for finding in findings:
        if finding.fix:
            console.print(f"{finding.check}: {finding.fix}.", soft_wrap=True, markup=False, highlight=False)
    if any(finding.state is State.FAILED for finding in findings):
        raise typer.Exit(ExitCode.NO)
