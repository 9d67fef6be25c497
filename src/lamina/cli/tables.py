"""The table of pods.

A reason is a sentence that many pods may share, so the table has its number and the sentences follow.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from rich.console import Console
from rich.table import Table

from lamina.cli.terminal import print_table
from lamina.report.cluster_view import ClusterView
from lamina.report.pods import PodRow, pod_rows
from lamina.report.shares import ShareRow

_HEAD = ("POD", "STATUS", "NODE", "GPU", "MEMORY")
_USE = ("USED", "PEAK")
_MORE = ("CONTAINER", "MODE", "UUID")
UNKNOWN = "-"


def print_pods(console: Console, cluster: ClusterView, namespace: str | None) -> bool:
    """Print each pod that requests GPUs, in one namespace or in all (None): what it holds, or why it is pending.
    Deleted pods whose processes still run come last.

    Returns False, and prints nothing, where there is none.
    """
    rows = pod_rows(cluster, namespace)
    if not rows:
        return False
    print_table(console, pod_table(rows, wide=False, namespaces=namespace is None))
    for sentence in reasons(rows):
        console.print(sentence, markup=False, soft_wrap=True)
    return True


def pod_table(rows: Sequence[PodRow], *, wide: bool, namespaces: bool) -> Table:
    """USED and PEAK are there where an agent says what is used. A wide table has containers, modes and UUIDs too,
    another one containers where a pod has several with shares."""
    numbers = _numbers(rows)
    used = any(share.used_mib is not None for row in rows for share in row.shares)
    several = any(len({share.container for share in row.shares}) > 1 for row in rows)
    more = len(_MORE) if wide else int(several)
    head = (*_HEAD, *(_USE if used else ()), "COMPUTE", *_MORE[:more], "WHY")
    table = Table(*(("NAMESPACE",) if namespaces else ()), *head, box=None, pad_edge=False)
    for row in rows:
        first = (row.namespace,) if namespaces else ()
        mark = f"({numbers[row.reason]})" if row.reason else ""
        cells = [*_cells(row), *(_used(row) if used else ()), _computes(row), *islice(_more(row), more)]
        table.add_row(*first, *cells, mark)
    return table


def reasons(rows: Sequence[PodRow]) -> Iterator[str]:
    """The sentences that the table has numbers of."""
    return (f"({number}) {reason}" for reason, number in _numbers(rows).items())


def amount(value: float | None, unit: str) -> str:
    """A number with its unit, or `-`."""
    return UNKNOWN if value is None else f"{value:.0f} {unit}"


def _numbers(rows: Sequence[PodRow]) -> dict[str, int]:
    found = dict.fromkeys(row.reason for row in rows if row.reason)
    return {reason: number for number, reason in enumerate(found, 1)}


def _cells(row: PodRow) -> Iterator[str]:
    yield row.pod
    yield row.status
    yield row.node
    yield "\n".join(_gpu(share) for share in row.shares)
    yield "\n".join(_memory(share) for share in row.shares)


def _used(row: PodRow) -> Iterator[str]:
    yield "\n".join(amount(share.used_mib, "MiB") for share in row.shares)
    yield "\n".join(amount(share.peak_mib, "MiB") for share in row.shares)


def _computes(row: PodRow) -> str:
    devices = ", ".join(f"{number} {name}" for name, number in row.devices.items())
    return devices or "\n".join(share.compute for share in row.shares)


def _more(row: PodRow) -> Iterator[str]:
    yield "\n".join(f"{share.container}{' (init)' if share.init else ''}" for share in row.shares)
    yield "\n".join(share.mode for share in row.shares)
    yield "\n".join(share.gpu for share in row.shares)


def _memory(share: ShareRow) -> str:
    """What is guaranteed, and where more may be borrowed, the limit."""
    limit = "" if share.limit_mib == share.memory_mib else f" to {share.limit_mib}"
    return f"{share.memory_mib}{limit} MiB"


def _gpu(share: ShareRow) -> str:
    return f"{share.gpu if share.index is None else share.index}{f' ({share.mig})' if share.mig else ''}"
