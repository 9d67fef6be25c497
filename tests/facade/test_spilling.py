"""Where memory is granted more than once, what exceeds the physical share is managed memory; elsewhere never."""

import pytest

from tests.facade.allocations import TOOLS
from tests.facade.conftest import CONTEXT, MIB, MakeContainer
from tests.facade.python_programs import python

CARD = 32494  # MiB of the V100 of 32 GB


@pytest.mark.parametrize("drop", ["drop", "drop_ordered"])
@pytest.mark.parametrize("take", ["plain", "pitched", "ordered"])
def test_the_limit_is_exact_beyond_the_physical_share(take: str, drop: str, container: MakeContainer) -> None:
    script = f"""
first, second, third = {take}(640), {take}(1920), {take}(640)
print(first[0], second[0], third[0], free(), ask(8, second[1]))
print({drop}(second[1]), cuda.cuCtxSynchronize(), free())
print({take}(1920)[0], {drop}(first[1]), cuda.cuCtxSynchronize(), free())
"""
    done = python(container(3000, physical=1000), TOOLS + script)
    assert done.stdout.splitlines() == ["0 0 2 (0, 137) (0, 0)", "0 0 (0, 2057)", "0 0 0 (0, 777)"], done.stderr


def test_the_program_sees_device_memory(container: MakeContainer) -> None:
    script = """
within, beyond = plain(600)[1], plain(1000)[1]
for where in (within, beyond, beyond + 4096):
    print(ask(2, where), ask(8, where), ask(4, where)[0], ask_all(where))
base, size = ctypes.c_uint64(), ctypes.c_size_t()
print(cuda.cuMemGetAddressRange_v2(ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(beyond + 5)),
      base.value == beyond, size.value >> 20)
asked = ctypes.c_uint64()
print(cuda.cuMemAllocManaged(ctypes.byref(asked), ctypes.c_size_t(64 << 20), 1), ask(8, asked.value))
"""
    done = python(container(3000, physical=1000), TOOLS + script)
    seen = ["(0, 2) (0, 0) 1 (0, 2, 0, 0)"] * 3 + ["0 True 1000", "0 (0, 1)"]
    assert done.stdout.splitlines() == seen, done.stderr


def test_usage_has_what_spilled(container: MakeContainer) -> None:
    box = container(3000, physical=1000)
    with box.waiting(TOOLS + "plain(600), plain(1000), plain(1)"):
        device = box.usage().devices[0]
        assert (device.held, device.spilled) == (CONTEXT + 1602 * MIB, 1000 * MIB)
        assert box.usage().processes[0].spilled == {device.uuid: 1000 * MIB}
    python(box, "begin(); free()")
    assert box.usage().devices[0].spilled == 0


@pytest.mark.parametrize(("physical", "codes"), [(0, "0 2 2"), (2500, "0 0 2")])
def test_a_gpu_that_is_full_for_real(physical: int, codes: str, container: MakeContainer) -> None:
    """Only where memory is granted more than once does the refusal of the driver make it managed."""
    box = container(2000, physical=min(physical, 1900))
    with box.waiting(f"begin(); assert take({CARD - 303 - 1000}) == 0", outside=True):
        done = python(box, TOOLS + "print(plain(600)[0], plain(600)[0], plain(600)[0])")
    assert done.stdout == codes + "\n", done.stderr
