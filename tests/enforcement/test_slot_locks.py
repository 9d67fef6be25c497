"""A usage file is in use while a process has locked a slot of it, wherever the slot is."""

from pathlib import Path

import pytest

from lamina.enforcement import DeviceLimit, Limits, layout, write_container
from lamina.enforcement.open_usage import is_in_use
from tests.enforcement.gpu_uuids import UUID
from tests.enforcement.leases import lease
from tests.enforcement.slots import locked_slot


@pytest.fixture
def usage(tmp_path: Path) -> Path:
    write_container(tmp_path, Limits(devices=(DeviceLimit(uuid=UUID.format(1), memory_bytes=1 << 30),)))
    return tmp_path / "usage"


def test_a_file_without_processes_is_not_in_use(usage: Path) -> None:
    assert not is_in_use(usage)
    assert not is_in_use(usage.with_name("none")), "a whole GPU has no usage file"


@pytest.mark.parametrize("slot", [0, 1, layout.SLOTS - 1])
def test_a_file_is_in_use_until_the_lock_on_a_slot_is_gone(usage: Path, slot: int) -> None:
    with locked_slot(usage, layout.usage_bytes(1) - (layout.SLOTS - slot) * layout.slot_stride(1)):
        assert is_in_use(usage)
    assert not is_in_use(usage)


def test_a_lease_is_held_by_a_living_process(usage: Path) -> None:
    with lease(usage) as taken:
        assert taken == "leased"
        assert is_in_use(usage)
