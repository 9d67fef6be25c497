"""The device manager's state on disk, so that containers keep devices and CDI names over a restart of the kubelet."""

from pathlib import Path

import msgspec

from lamina_lab.kubelet.device_manager.allocation import DeviceAllocation, DeviceLedger

FILE = "kubelet_internal_checkpoint"


class _Contents(msgspec.Struct, frozen=True, rename="camel"):
    allocations: list[DeviceAllocation]
    resources: list[str]


def save(folder: Path, ledger: DeviceLedger) -> None:
    """Write `ledger` to `folder` atomically."""
    text = msgspec.json.encode(_Contents(ledger.allocations(), sorted(ledger.resources)))
    fresh = folder / f".{FILE}"
    fresh.write_bytes(text)
    fresh.replace(folder / FILE)


def load(folder: Path) -> DeviceLedger:
    """The saved ledger; an empty one if there is none or it cannot be read."""
    ledger = DeviceLedger()
    try:
        contents = msgspec.json.decode((folder / FILE).read_bytes(), type=_Contents)
    except (OSError, msgspec.MsgspecError):
        return ledger
    for resource in contents.resources:
        ledger.expect(resource)
    for allocation in contents.allocations:
        ledger.hold(allocation)
    return ledger
