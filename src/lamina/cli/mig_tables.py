"""The tables of MIG profiles, and of nodes with MIG devices."""

from collections.abc import Iterator, Sequence

from rich.table import Table

from lamina.operations.mig import MigNode, ProfileEntry


def profile_table(rows: Sequence[ProfileEntry]) -> Table:
    """PLACES are the slices at which an instance may start, and how many it takes."""
    table = Table("CARD", "PROFILE", "ID", "MEMORY", "COMPUTE", "SMS", "MOST", "PLACES", box=None, pad_edge=False)
    for row in rows:
        table.add_row(
            row.card,
            row.profile,
            str(row.id),
            "" if row.memory_mib is None else f"{row.memory_mib} MiB",
            f"{row.slices}/{row.card_slices}",
            "" if row.sms is None else str(row.sms),
            str(row.most),
            f"{','.join(map(str, row.starts))}:{row.size}",
        )
    return table


def node_table(rows: Sequence[MigNode]) -> Table:
    table = Table("NODE", "CONFIGURATION", "STATE", "DEVICES", box=None, pad_edge=False)
    for node in rows:
        table.add_row(node.name, node.configuration, node.state, ", ".join(node.devices))
    return table


def node_notes(rows: Sequence[MigNode]) -> Iterator[str]:
    """Why configurations failed, and why devices are not offered."""
    for row in rows:
        if row.reason:
            yield f"{row.name} failed: {row.reason}"
        if row.withheld:
            yield f"{row.name} does not offer all of its MIG devices: {row.withheld}"
