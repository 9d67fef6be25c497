"""`lamina quotas`: what the namespaces may hold of GPU memory and compute, and what they hold."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from lamina.cli.view import Kubeconfig

if TYPE_CHECKING:
    from lamina.cli.cluster import Cluster


def quotas(kubeconfig: Kubeconfig = None) -> None:
    """List the quotas on GPU memory and compute of all namespaces, with what is used of each."""
    from rich.table import Table

    from lamina.cli.terminal import console, print_table
    from lamina.control.quota_status import usage

    cluster = asyncio.run(_read(kubeconfig))
    table = Table("NAMESPACE", "QUOTA", "RESOURCE", "USED", "HARD", box=None, pad_edge=False)
    for namespace, quota in cluster.quotas.objects():
        taken = cluster.ledger.taken_in(namespace)
        for key, (used, hard) in usage(quota, taken, cluster.config).items():
            table.add_row(namespace, quota["metadata"]["name"], key.removeprefix("limits."), str(used), hard)
    if table.row_count:
        print_table(console, table)
    else:
        console.print("No quota of this cluster is about GPUs.")


async def _read(kubeconfig: Path | None) -> "Cluster":
    from lamina.cli import cluster
    from lamina.ports.kube.client import connect

    kube = await connect(kubeconfig)
    try:
        return await cluster.read(kube)
    finally:
        await kube.close()
