"""What the driver says of addresses, and pinned host memory as a device address."""

import pytest

from tests.simgpu.machines import Machine

INVALID_VALUE = 1
IPC_CAPABLE, RDMA_CAPABLE, MAPPING_SIZE, MAPPING_BASE, BLOCK_ID, DECOMPRESS = 10, 15, 18, 19, 20, 21


def test_the_attributes_that_libraries_register_buffers_with(machine: Machine) -> None:
    process = machine.started()
    at = process("alloc(4)")[1]
    other = process("alloc(4)")[1]
    assert process(f"attribute({at}, {IPC_CAPABLE})") == (0, 1)
    assert process(f"attribute({at}, {RDMA_CAPABLE})") == (0, 1)
    assert process(f"attribute({at + 100}, {MAPPING_SIZE}, 8)") == (0, 4 << 20)
    assert process(f"attribute({at + 100}, {MAPPING_BASE}, 8)") == (0, at)
    assert process(f"attribute({at}, {BLOCK_ID}, 8)")[1] == process(f"attribute({at + 5}, {BLOCK_ID}, 8)")[1] != 0
    assert process(f"attribute({at}, {BLOCK_ID}, 8)") != process(f"attribute({other}, {BLOCK_ID}, 8)")
    assert process(f"attribute({at}, {DECOMPRESS})") == (0, 0)
    assert process(f"attribute({at}, 99)")[0] == INVALID_VALUE


def test_only_plain_memory_can_be_exported_by_an_ipc_handle(machine: Machine) -> None:
    process = machine.started()
    assert process(f"attribute(alloc(4, 'cuMemAllocManaged')[1], {IPC_CAPABLE})") == (0, 0)
    assert process(f"attribute(alloc(4, 'cuMemAllocAsync')[1], {IPC_CAPABLE})") == (0, 0)


def test_pinned_memory_is_a_device_address(machine: Machine) -> None:
    process = machine.started()
    host = process("pinned(4096)")
    at = process("alloc(4)")[1]
    assert process(f"cu.cuMemsetD8_v2(c_uint64({host}), ctypes.c_ubyte(7), c_size_t(4096))") == 0
    assert process(f"fetch({host} + 4090, 6)") == (0, b"\x07" * 6)
    assert process(f"write({host}, b'here')") == 0
    assert process(f"cu.cuMemcpyDtoD_v2(c_uint64({at}), c_uint64({host}), c_size_t(4096))") == 0
    assert process(f"fetch({at}, 5)") == (0, b"here\x07")


@pytest.mark.parametrize("beyond", [1, 4096])
def test_pinned_memory_has_an_end(machine: Machine, beyond: int) -> None:
    process = machine.started()
    host = process("pinned(4096)")
    fill = f"cu.cuMemsetD8_v2(c_uint64({host}), ctypes.c_ubyte(7), c_size_t({4096 + beyond}))"
    assert process(fill) == INVALID_VALUE
    assert process(f"cu.cuMemFreeHost(c_void_p({host}))") == 0
    assert process(f"cu.cuMemsetD8_v2(c_uint64({host}), ctypes.c_ubyte(7), c_size_t(1))") == INVALID_VALUE
