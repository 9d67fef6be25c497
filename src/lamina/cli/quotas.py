"""`lamina quotas`: the quotas of all namespaces on GPU memory and compute."""

from lamina.cli.options import Kubeconfig


def quotas(kubeconfig: Kubeconfig = None) -> None:
    """List quotas on GPU memory and compute in all namespaces, with current usage."""
    from rich.table import Table

    from lamina.cli.connection import read_cluster
    from lamina.cli.terminal import console, print_table
    from lamina.controller.quotas.status import usage

    cluster = read_cluster(kubeconfig)
    table = Table("NAMESPACE", "QUOTA", "RESOURCE", "USED", "HARD", box=None, pad_edge=False)
    for namespace, quota in cluster.quotas.objects():
        taken = cluster.ledger.holdings.taken_in_namespace(namespace)
        for resource, (used, hard) in usage(quota, taken, cluster.config).items():
            table.add_row(namespace, quota["metadata"]["name"], resource.removeprefix("limits."), str(used), hard)
    if table.row_count:
        print_table(console, table)
    else:
        console.print("No quota in this cluster limits GPU memory or compute.")
