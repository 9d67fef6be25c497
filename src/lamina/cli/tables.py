"""The table of pods.

A reason is a sentence that many pods may share, so the table has its number and the sentences follow.
"""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from lamina.cli.terminal import print_table
from lamina.dialects import parse
from lamina.errors import BadInput
from lamina.model.gpus import Inventory, Mode
from lamina.model.grants import Grant, Share
from lamina.operations.cluster_view import ClusterView
from lamina.operations.native_capacity import counted
from lamina.operations.pending_reasons import waiting_because
from lamina.ports.kube import Object

_ENDED = ("Succeeded", "Failed")
_SURVIVES = "it is deleted, but its processes still run, so its shares count"


def print_pods(console: Console, cluster: ClusterView, namespace: str | None) -> bool:
    """Print each pod that requests GPUs, in one namespace or in all (None): what it holds, or why it is pending.
    Deleted pods whose processes still run come last.

    Returns False, and prints nothing, where there is none.
    """
    reasons: dict[str, int] = {}
    columns = ("NAMESPACE",) if namespace is None else ()
    table = Table(*columns, "POD", "STATUS", "NODE", "GPU", "MEMORY", "COMPUTE", "WHY", box=None, pad_edge=False)
    for pod in sorted(cluster.pods, key=_order):
        meta = pod["metadata"]
        if namespace in (None, meta["namespace"]) and _requests_gpus(pod, cluster):
            first = (meta["namespace"],) if namespace is None else ()
            reason = waiting_because(cluster, pod)
            mark = f"({reasons.setdefault(reason, len(reasons) + 1)})" if reason else ""
            table.add_row(*first, meta["name"], *_held(pod, cluster), mark)
    for node, survivor in cluster.survivors(namespace):
        first = (survivor.namespace,) if namespace is None else ()
        shares = [share for container in survivor.containers for share in container.shares]
        mark = f"({reasons.setdefault(_SURVIVES, len(reasons) + 1)})"
        table.add_row(*first, survivor.pod, "Deleted", node, *_amounts(shares, cluster.inventories[node]), mark)
    if table.row_count == 0:
        return False
    print_table(console, table)
    for reason, number in reasons.items():
        console.print(f"({number}) {reason}", markup=False, soft_wrap=True)
    return True


def _order(pod: Object) -> tuple[bool, str, str]:
    """Running pods first, pending ones last."""
    return (not pod["spec"].get("nodeName"), pod["metadata"]["namespace"], pod["metadata"]["name"])


def _requests_gpus(pod: Object, cluster: ClusterView) -> bool:
    if pod["metadata"]["uid"] in cluster.grants:
        return True
    try:
        return parse(pod, cluster.config) is not None or bool(counted(pod))
    except BadInput:
        return True


def _held(pod: Object, cluster: ClusterView) -> Iterator[str]:
    """Status, node, GPUs, memory, compute: by the grant, or the native devices that kubelet allocated.

    A pod that has ended holds nothing, although its grant remains.
    """
    node = pod["spec"].get("nodeName", "")
    phase = pod.get("status", {}).get("phase", "Unknown")
    grant = cluster.grants.get(pod["metadata"]["uid"])
    shares = _shares(grant) if grant and node and phase not in _ENDED else []
    yield phase
    yield node
    if node and not grant and phase not in _ENDED:
        yield from ("", "", ", ".join(f"{amount} {name}" for name, amount in counted(pod).items()))
        return
    yield from _amounts(shares, cluster.inventories.get(node))


def _amounts(shares: list[Share], inventory: Inventory | None) -> Iterator[str]:
    """GPUs, memory, compute."""
    yield "\n".join(_gpu(share, inventory) for share in shares)
    yield "\n".join(f"{share.memory_mib} MiB" for share in shares)
    yield "\n".join(_compute(share) for share in shares)


def _shares(grant: Grant) -> list[Share]:
    return [share for container in grant.containers for share in container.shares]


def _gpu(share: Share, inventory: Inventory | None) -> str:
    gpus = {gpu.uuid: gpu for gpu in inventory.gpus} if inventory else {}
    gpu = gpus.get(share.gpu)
    instance = f" ({share.mig.profile} at {share.mig.start})" if share.mig else ""
    return f"{gpu.index if gpu else share.gpu}{instance}"


def _compute(share: Share) -> str:
    if share.mode is Mode.WHOLE:
        return "whole"
    return f"{share.cores} %" if share.cores else "shared"
