"""What the accounts of all agents grew by within a time, from a Prometheus that scrapes them."""

import re

from lamina.errors import BadInput, Outside
from lamina.operations.cost.accounts import GIBIBYTES, GPUS, LABELS, SECONDS, WORKLOADS, ClusterAccounts
from lamina.ports.prometheus import HttpPrometheus, checked_address

_TIMEOUT_S = 60.0
_TIME = re.compile(r"[1-9][0-9]{0,5}[smhdwy]")
_GROUPS = {
    f"{WORKLOADS}{SECONDS}": "namespace, kind, workload, model, part, figure",
    f"{WORKLOADS}{GIBIBYTES}": "namespace, kind, workload, model, figure",
    f"{LABELS}{SECONDS}": "namespace, label, value, model, part, figure",
    f"{LABELS}{GIBIBYTES}": "namespace, label, value, model, figure",
    f"{GPUS}total": "model, part, figure",
}
"""The labels that remain of each series. What was folded has grown before."""


def checked_since(since: str) -> str:
    """The time as Prometheus writes it. Raises BadInput."""
    if not _TIME.fullmatch(since):
        raise BadInput(f"--since must be a number of s, m, h, d, w or y, such as 30d, got {since!r}")
    return since


async def grown_accounts(address: str, since: str) -> ClusterAccounts:
    """Ask the Prometheus at an address such as http://127.0.0.1:9090. Raises BadInput, Outside."""
    address = checked_address(address, where="--prometheus", example="http://127.0.0.1:9090")
    prometheus, accounts = HttpPrometheus(address, timeout_s=_TIMEOUT_S), ClusterAccounts()
    try:
        for name, labels in _GROUPS.items():
            for sample in await prometheus.query(f"sum by ({labels}) (increase({name}[{since}]))"):
                try:
                    accounts.add(name, sample.labels, sample.value)
                except KeyError as error:
                    raise Outside(f"{address} has series {name} that agents do not serve: {error!r}") from error
    finally:
        await prometheus.close()
    return accounts
