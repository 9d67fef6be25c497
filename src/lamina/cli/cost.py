"""`lamina cost`: what workloads requested and used of GPUs over time, and what that costs."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.table import Table

from lamina.cli.cluster_warnings import warn_of_refused_configuration
from lamina.cli.connection import ClusterChoice, cluster_command, with_installation
from lamina.cli.options import AllNamespaces, OneNamespace, one_of
from lamina.cli.tables import UNKNOWN
from lamina.cli.terminal import console, print_document, print_table
from lamina.core.component_names import documentation
from lamina.core.prices import Pricing
from lamina.errors import BadInput
from lamina.operations.cost import prometheus as grown
from lamina.operations.cost import rows
from lamina.operations.cost.accounts import ClusterAccounts, total_accounts
from lamina.operations.cost.rows import CostRow
from lamina.operations.workloads import check_namespace
from lamina.ports.kube import ProxiedKube
from lamina.report import cluster_reader, cluster_view

_OUTPUTS = ("table", "json", "yaml")
_FIGURES = (
    *("memory_requested", "memory_used", "compute_requested", "compute_used"),
    *("compute_borrowed", "compute_lent", "gib_requested", "gib_used", "gib_borrowed"),
)
_ALL = 0.999
"""What is less than this of a sum is not all of it."""
_HEAD = (
    *("MEMORY GPU-H", "MEMORY USED", "COMPUTE GPU-H", "COMPUTE USED", "COMPUTE BORROWED", "COMPUTE LENT"),
    *("GIB-H", "GIB USED", "GIB BORROWED"),
)
"""The heads of `_FIGURES`. Those of which no row has a figure have no column."""
_NO_PRICE = "COST is `-` where GPUs have no price; set pricing.gpus in the configuration, see"


@cluster_command
def cost(
    choice: ClusterChoice,
    namespace: OneNamespace = "",
    all_namespaces: AllNamespaces = False,
    by: Annotated[str, typer.Option("--by", help="A row for each namespace, workload or label.")] = "namespace",
    label: Annotated[
        str, typer.Option("--label", help="The label of `--by label`, such as team.", show_default=False)
    ] = "",
    prometheus: Annotated[
        str,
        typer.Option("--prometheus", help="Address of a Prometheus that scrapes the agents.", show_default=False),
    ] = "",
    since: Annotated[
        str, typer.Option("--since", help="Only this time until now, such as 30d. Needs --prometheus.")
    ] = "",
    output: Annotated[str, typer.Option("--output", "-o", help="Form: table, json or yaml.")] = "table",
) -> None:
    """Show GPU-hours requested, used, borrowed and lent, and their cost by the prices of the configuration.

    Without a Prometheus, the figures are all that the agents have counted.
    """
    one_of(output, _OUTPUTS, "--output")
    namespace = "" if all_namespaces else namespace
    one_of(by, (rows.NAMESPACE, rows.WORKLOAD, rows.LABEL), "--by")
    if bool(label) != (by == rows.LABEL):
        raise BadInput("--by label needs the label itself, and only it does, as in --by label --label team")
    if bool(since) != bool(prometheus):
        raise BadInput("--since and --prometheus need each other: agents have no figures of a time that has passed")
    if since:
        grown.checked_since(since)

    async def read(kube: ProxiedKube) -> tuple[cluster_view.ClusterView, ClusterAccounts]:
        cluster = await cluster_reader.read(kube)
        if prometheus:
            counted = await grown.grown_accounts(prometheus, since)
        else:
            counted = await total_accounts(kube, cluster.inventories, cluster.pods)
        if namespace and all(account.namespace != namespace for account in counted.held):
            await check_namespace(kube, namespace)
        return cluster, counted

    cluster, accounts = with_installation(choice, read)
    warn_of_refused_configuration(cluster)
    pricing = cluster.config.pricing
    found = rows.cost_rows(accounts, pricing, by=by, label=label, namespace=namespace)
    idle = None if namespace else rows.idle_row(accounts, pricing)
    if output != "table":
        document = {"currency": pricing.currency, "rows": found, "idle": idle, "silentNodes": sorted(accounts.silent)}
        print_document(document, output)
    else:
        _print_table(found, idle, pricing, by)
        _print_silent(accounts)


def _print_table(found: Sequence[CostRow], idle: CostRow | None, pricing: Pricing, by: str) -> None:
    if not found and idle is None:
        console.print("Nothing was counted.")
        return
    names = {"namespace": ("NAMESPACE",), "workload": ("NAMESPACE", "WORKLOAD"), "label": ("LABEL",)}[by]
    shown = [name for name in _FIGURES if any(getattr(row, name) for row in (*found, *([idle] if idle else ())))]
    heads = (head for name, head in zip(_FIGURES, _HEAD, strict=True) if name in shown)
    table = Table(*names, *heads, "COST", box=None, pad_edge=False)
    for row in found:
        first = {"namespace": (row.namespace,), "workload": (row.namespace, _workload(row)), "label": (row.label,)}[by]
        table.add_row(*(each or "(others)" for each in first), *_cells(row, shown, pricing))
    if idle is not None:
        table.add_row("(idle)", *("" for _ in names[1:]), *_cells(idle, shown, pricing))
    print_table(console, table)
    meaning = "GPU-H are requested GPU-hours, GIB-H requested GiB-hours; the columns after each have its unit."
    console.print(meaning, soft_wrap=True)
    if any(row.cost is None for row in (*found, *([idle] if idle else ()))):
        console.print(f"{_NO_PRICE} {documentation('how-to/cost.md')}.", soft_wrap=True, markup=False)
    for part in ("memory", "compute"):
        requested = sum(getattr(row, f"{part}_requested") for row in found)
        observed = sum(getattr(row, f"{part}_observed") for row in found)
        if observed < requested * _ALL:
            sentence = (
                f"Use of {part} is known for {observed:.2f} of {requested:.2f} requested GPU-hours, and only of these."
            )
            console.print(sentence, soft_wrap=True)


def _workload(row: CostRow) -> str:
    return f"{row.kind}/{row.workload}" if row.workload else ""


def _cells(row: CostRow, shown: Sequence[str], pricing: Pricing) -> Iterator[str]:
    for name in shown:
        value: float | None = getattr(row, name)
        yield UNKNOWN if value is None else f"{value:.2f}"
    yield UNKNOWN if row.cost is None else f"{row.cost:.2f} {pricing.currency}".rstrip()


def _print_silent(accounts: ClusterAccounts) -> None:
    if accounts.silent:
        node = min(accounts.silent)
        sentence = f"Figures of {len(accounts.silent)} nodes are missing, first {node}: {accounts.silent[node]}"
        console.print(sentence, markup=False, soft_wrap=True)
