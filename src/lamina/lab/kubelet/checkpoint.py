"""The device manager's memory on disk, so that a container keeps its devices and CDI names over a kubelet's restart."""

from __future__ import annotations

from pathlib import Path

import msgspec

from lamina.lab.kubelet.devices import Allocation, Ledger

FILE = "kubelet_internal_checkpoint"


class _Contents(msgspec.Struct, frozen=True, rename="camel"):
    allocations: list[Allocation]
    resources: list[str]


def save(folder: Path, ledger: Ledger) -> None:
    """Write `ledger` under `folder`, whole or not at all."""
    text = msgspec.json.encode(_Contents(ledger.allocations(), sorted(ledger.resources)))
    fresh = folder / f".{FILE}"
    fresh.write_bytes(text)
    fresh.replace(folder / FILE)


def load(folder: Path) -> Ledger:
    """The ledger as saved; an empty one where there is none or where it cannot be read, as after a disk's loss."""
    ledger = Ledger()
    try:
        contents = msgspec.json.decode((folder / FILE).read_bytes(), type=_Contents)
    except (OSError, msgspec.MsgspecError):
        return ledger
    for resource in contents.resources:
        ledger.expect(resource)
    for allocation in contents.allocations:
        ledger.hold(allocation)
    return ledger
