"""Which GPU is which: whatever CUDA_VISIBLE_DEVICES says, every name of a GPU leads to the same one and to its limit.

The programs of a container are one Python program here, which forks once per value of CUDA_VISIBLE_DEVICES, so that
hundreds of them take seconds. Each GPU has a limit of its own size.
"""

import ctypes
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.enforcement import DeviceLimit, Limits, write_container
from lamina.enforcement.limits import encode
from lamina_lab import simgpu
from lamina_lab.simgpu.description import place
from tests.building import compile_program
from tests.facade.conftest import MIB, Container

LOOK = """
import ctypes, json, os, sys
def look(wanted):
    if wanted is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = wanted
    cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
    count, context, size, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_uint64()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []
    nvml.nvmlInit_v2()
    seen = []
    for ordinal in range(count.value):
        raw, bus, back = (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(32), ctypes.c_int(-1)
        cuda.cuDeviceGetUuid(raw, ordinal), cuda.cuDeviceGetPCIBusId(bus, 32, ordinal)
        text = bytes(raw).hex()
        uuid = "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        cuda.cuDeviceGetByPCIBusId(ctypes.byref(back), bus)
        handle, index = ctypes.c_void_p(), ctypes.c_uint()
        by_uuid = nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle))
        nvml.nvmlDeviceGetIndex(handle, ctypes.byref(index))
        memory = (ctypes.c_ulonglong * 3)()
        nvml.nvmlDeviceGetMemoryInfo(handle, memory)
        cuda.cuDeviceTotalMem_v2(ctypes.byref(size), ordinal)
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal), cuda.cuCtxSetCurrent(context)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        blocks = ctypes.c_size_t(free.value >> 21 << 21), ctypes.c_size_t(2 << 20)
        exact = [cuda.cuMemAlloc_v2(ctypes.byref(pointer), bytes) for bytes in blocks]
        nvml.nvmlDeviceGetMemoryInfo(handle, memory)
        seen.append([uuid, by_uuid, index.value, back.value, size.value >> 20, total.value >> 20, exact,
                     memory[0] >> 20, (memory[1] + memory[2]) >> 20])
    return seen
for line in sys.stdin:
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, json.dumps(look(json.loads(line))).encode())
        os._exit(0)
    os.close(writer)
    print(os.read(reader, 65536).decode(), flush=True)
    os.close(reader)
    os.wait()
"""


def machine(folder: Path, granted: tuple[int, ...]) -> Container:
    """Four GPUs, the fastest in the middle; the GPU of index i gets 1000 + 100 * i MiB."""
    models = [simgpu.GpuSpec(model=model) for model in ("T4", "V100-SXM2-32GB", "A100-SXM4-40GB", "V100-SXM2-32GB")]
    made = simgpu.Machine(gpus=tuple(models), seed=str(folder))
    simgpu.write(made, folder / "machine")
    uuids = [gpu.uuid for gpu in place(made)]
    limits = Limits(devices=tuple(DeviceLimit(uuid=uuids[i], memory_bytes=(1000 + 100 * i) * MIB) for i in granted))
    write_container(folder, limits)
    return Container(folder, made, limits)


def looks(box: Container, wanted: list[str | None], **more: str) -> list[list[list[object]]]:
    """What a program sees under each value of CUDA_VISIBLE_DEVICES; None: unset."""
    lines = "".join(json.dumps(value) + "\n" for value in wanted)
    done = box.run(sys.executable, "-c", LOOK, stdin=lines, timeout=300, **more)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(wanted)
    return answers


def expected(box: Container, granted: tuple[int, ...], chosen: tuple[int, ...]) -> list[list[object]]:
    """What must be seen when the program chose these entries of the limits, in this order."""
    seen = []
    for ordinal, entry in enumerate(chosen):
        mib = 1000 + 100 * granted[entry]
        seen.append([box.uuids[granted[entry]], 0, entry, ordinal, mib, mib, [0, 2], mib, mib])
    return seen


def choices(count: int) -> Iterator[tuple[int, ...]]:
    for length in range(1, count + 1):
        yield from itertools.permutations(range(count), length)


def words(box: Container, granted: tuple[int, ...], chosen: tuple[int, ...]) -> list[str]:
    """Every form in which a list can name these GPUs."""
    uuids = [box.uuids[granted[entry]] for entry in chosen]
    numbers = [str(entry) for entry in chosen]
    mixed = [uuid if i % 2 else number for i, (uuid, number) in enumerate(zip(uuids, numbers, strict=True))]
    upper = ["gpu" + uuid[3:].upper() for uuid in uuids]
    forms = [numbers, uuids, [uuid[:14] for uuid in uuids], upper, mixed]
    return [",".join(form) for form in forms]


@pytest.mark.parametrize("granted", [(0,), (3,), (1, 2), (0, 3), (0, 1, 3), (0, 1, 2, 3)], ids=str)
def test_every_name_of_a_gpu_means_the_same_gpu_and_its_limit(granted: tuple[int, ...], tmp_path: Path) -> None:
    box = machine(tmp_path, granted)
    cases: list[tuple[str | None, tuple[int, ...]]] = [(None, tuple(range(len(granted))))]
    cases += [(form, chosen) for chosen in choices(len(granted)) for form in words(box, granted, chosen)]
    answers = looks(box, [wanted for wanted, _ in cases])
    for (wanted, chosen), seen in zip(cases, answers, strict=True):
        assert seen == expected(box, granted, chosen), wanted


def test_a_wrong_word_ends_the_list_as_in_cuda(tmp_path: Path) -> None:
    granted = (1, 2, 3)
    box = machine(tmp_path, granted)
    hidden, own = box.uuids[0], [box.uuids[i] for i in granted]
    common = "GPU-"  # names all of them, so none
    cases: dict[str, tuple[int, ...]] = {
        "": (), "-1": (), "NoDevFiles": (), "none": (), "all": (), " ": (), ",": (), "0,,1": (0,), "0,": (0,),
        "3": (), "0,3,1": (0,), "1,-1,0": (1,), "2,none": (2,), "99999": (), "0x1": (), "+1": (), "1.0": (),
        hidden: (), f"{own[1]},{hidden},{own[0]}": (1,), common: (), f"0,{common}": (0,), own[0][4:]: (),
        own[0] + "0": (), f"MIG-{own[0][4:]}": (), f"MIG-{own[0]}/1/0": (), " 0 ,\t2 ": (0, 2),
        "0,0": (), "0,1,0": (), f"0,{own[0]}": (), f"{own[2]},2": (), ",".join(["0"] * 40): (),
    }  # fmt: skip
    answers = looks(box, list(cases))
    for (wanted, chosen), seen in zip(cases.items(), answers, strict=True):
        assert seen == expected(box, granted, chosen), wanted


@pytest.mark.parametrize("order", ["FASTEST_FIRST", "PCI_BUS_ID", "nonsense"])
def test_ordinals_follow_nvidia_smi_whatever_the_device_order(order: str, tmp_path: Path) -> None:
    granted = (0, 2, 3)
    box = machine(tmp_path, granted)
    for wanted, chosen in ((None, (0, 1, 2)), ("2,0", (2, 0)), (box.uuids[2], (1,))):
        assert looks(box, [wanted], CUDA_DEVICE_ORDER=order) == [expected(box, granted, chosen)]


def test_mig_devices_are_named_by_their_uuids(tmp_path: Path) -> None:
    sources = ["native/tests/facade_devices.c", "native/facade/cuda/devices.c", "native/facade/shared/limits.c"]
    flags = ("-shared", "-fPIC", '-DTABLE="generated/cuda_table.h"')
    visible = ctypes.CDLL(str(compile_program(tmp_path, "devices.so", sources, *flags))).devices_visible
    visible.restype = ctypes.c_bool
    own = [f"MIG-{number}1111111-2222-3333-4444-555555555555" for number in "ab"]
    own.append("GPU-c1111111-2222-3333-4444-555555555555")
    limits = encode(Limits(devices=tuple(DeviceLimit(uuid=uuid, memory_bytes=MIB) for uuid in own)))
    text = ctypes.create_string_buffer(1024)

    def shown(wanted: str) -> str:
        assert visible(limits, wanted.encode(), text, ctypes.c_size_t(len(text)))
        return text.value.decode()

    for chosen in choices(3):
        uuids = [own[i] for i in chosen]
        for forms in (uuids, [uuid[:6] for uuid in uuids], [str(i) for i in chosen], [uuid.lower() for uuid in uuids]):
            assert shown(",".join(forms)) == ",".join(uuids)
    assert shown("MIG-") == "" and shown("MIG-GPU-c1111111-2222-3333-4444-555555555555/1/0") == ""
    assert shown(f"{own[0]}x,{own[1]}") == "" and shown(f"{own[1]},{own[1][4:]}") == own[1]
    assert not visible(limits, None, text, ctypes.c_size_t(100))
