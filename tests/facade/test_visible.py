"""Which GPU is which: whatever CUDA_VISIBLE_DEVICES says, every name of a GPU leads to the same one and to its limit.

The programs of a container are one Python program here, which forks once per value of CUDA_VISIBLE_DEVICES, so that
hundreds of them take seconds. Each GPU has a limit of its own size.
"""

import ctypes
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lamina.enforcement import DeviceLimit, Limits, write_container
from lamina.enforcement.limits import encode
from lamina_lab import simgpu
from lamina_lab.simgpu.description import place
from tests.building import compile_program
from tests.facade.conftest import MIB, Container
from tests.simgpu.mig_scripts import PARTITION, TWO_HALVES

LOOK = """
def look():
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
"""
NAMES = """
def look():
    cuda, count, seen = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), []
    begun = cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value
    def ask(name, *arguments):
        value = ctypes.c_int(-1)
        return getattr(cuda, name)(ctypes.byref(value), *arguments), value.value
    for ordinal in range(-1, count.value + 1):
        raw, bus = (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(32)
        codes = cuda.cuDeviceGetUuid_v2(raw, ordinal), cuda.cuDeviceGetPCIBusId(bus, 32, ordinal)
        attributes = [ask("cuDeviceGetAttribute", number, ordinal) for number in (16, 33, 34, 50)]
        peers = [ask("cuDeviceCanAccessPeer", ordinal, other) for other in range(-1, count.value + 1)]
        linked = [ask("cuDeviceGetP2PAttribute", 1, ordinal, other) for other in range(-1, count.value + 1)]
        names = codes, bytes(raw).hex(), bus.value.decode(), ask("cuDeviceGet", ordinal)
        seen.append([names, attributes, peers, linked])
    buses = [ask("cuDeviceGetByPCIBusId", bus.encode()) for bus in BUSES]
    return begun, seen, buses, os.environ.get("CUDA_VISIBLE_DEVICES")
"""
EACH = """
import ctypes, json, os, sys
BUSES = sys.argv[1:]
for line in sys.stdin:
    reader, writer = os.pipe()
    if os.fork() == 0:
        if (wanted := json.loads(line)) is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = wanted
        os.write(writer, json.dumps(look()).encode())
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
    return answers(LOOK, wanted, box.environment(**more))


def answers(look: str, wanted: Sequence[str | None], variables: dict[str, str], *buses: str) -> list[Any]:
    lines = "".join(json.dumps(value) + "\n" for value in wanted)
    command = [sys.executable, "-c", look + EACH, *buses]
    done = subprocess.run(command, env=variables, input=lines, text=True, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(wanted)
    return found


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


GRANTED = [(0,), (3,), (1, 2), (0, 3), (2, 0), (0, 1, 3), (3, 1, 0), (0, 1, 2, 3)]


@pytest.mark.parametrize("granted", GRANTED, ids=str)
def test_every_name_of_a_gpu_means_the_same_gpu_and_its_limit(granted: tuple[int, ...], tmp_path: Path) -> None:
    box = machine(tmp_path, granted)
    cases: list[tuple[str | None, tuple[int, ...]]] = [(None, tuple(range(len(granted))))]
    cases += [(form, chosen) for chosen in choices(len(granted)) for form in words(box, granted, chosen)]
    answers = looks(box, [wanted for wanted, _ in cases])
    for (wanted, chosen), seen in zip(cases, answers, strict=True):
        assert seen == expected(box, granted, chosen), wanted


def wrong(box: Container) -> dict[str, tuple[int, ...]]:
    """Lists with a word that names no GPU, where 1, 2 and 3 are granted, and what they choose."""
    hidden, own = box.uuids[0], box.uuids[1:]
    common = "GPU-"  # names all of them, so none
    return {
        "": (), "-1": (), "NoDevFiles": (), "none": (), "all": (), " ": (), ",": (), "0,,1": (0,), "0,": (0,),
        "3": (), "0,3,1": (0,), "1,-1,0": (1,), "2,none": (2,), "99999": (), "0x1": (), "+1": (), "1.0": (),
        hidden: (), f"{own[1]},{hidden},{own[0]}": (1,), common: (), f"0,{common}": (0,), own[0][4:]: (),
        own[0] + "0": (), f"MIG-{own[0][4:]}": (), f"MIG-{own[0]}/1/0": (), " 0 ,\t2 ": (0, 2),
        "0,0": (), "0,1,0": (), f"0,{own[0]}": (), f"{own[2]},2": (), ",".join(["0"] * 40): (),
    }  # fmt: skip


def test_a_wrong_word_ends_the_list_as_in_cuda(tmp_path: Path) -> None:
    granted = (1, 2, 3)
    box = machine(tmp_path, granted)
    cases = wrong(box)
    for (wanted, chosen), seen in zip(cases.items(), looks(box, list(cases)), strict=True):
        assert seen == expected(box, granted, chosen), wanted


@pytest.mark.parametrize("granted", [(3,), (1, 2), (0, 1, 3)], ids=str)
def test_all_is_as_on_a_machine_with_the_granted_gpus_alone(granted: tuple[int, ...], tmp_path: Path) -> None:
    box = machine(tmp_path, granted)
    wanted = [None, *wrong(box), *(form for chosen in choices(len(granted)) for form in words(box, granted, chosen))]
    buses = [gpu.bus_id for gpu in place(box.machine)]
    alone = {"NVIDIA_VISIBLE_DEVICES": ",".join(box.uuids[i] for i in granted), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    bare = {**os.environ, **simgpu.environment(box.folder / "machine"), **alone}
    native, facade = (answers(NAMES, wanted, variables, *buses) for variables in (bare, box.environment()))
    for value, there, here in zip(wanted, native, facade, strict=True):
        assert here == there, value


@pytest.mark.parametrize("order", ["FASTEST_FIRST", "PCI_BUS_ID", "nonsense"])
def test_ordinals_follow_nvidia_smi_whatever_the_device_order(order: str, tmp_path: Path) -> None:
    granted = (0, 2, 3)
    box = machine(tmp_path, granted)
    for wanted, chosen in ((None, (0, 1, 2)), ("2,0", (2, 0)), (box.uuids[2], (1,))):
        assert looks(box, [wanted], CUDA_DEVICE_ORDER=order) == [expected(box, granted, chosen)]


@pytest.mark.parametrize("had", [(0,), (2,), (3,), (2, 3), (3, 0), (0, 2, 3)])
def test_a_container_may_lack_gpus_of_its_limits(had: tuple[int, ...], tmp_path: Path) -> None:
    """Containers that use different requests of one claim have one file of limits."""
    box = machine(tmp_path, (0, 2, 3))
    (seen,) = looks(box, [None], NVIDIA_VISIBLE_DEVICES=",".join(box.uuids[i] for i in had))
    assert [each[0] for each in seen] == [box.uuids[i] for i in sorted(had)]


def test_a_program_sees_one_mig_device_as_in_cuda(tmp_path: Path) -> None:
    halves = simgpu.Machine(gpus=(simgpu.GpuSpec(model="A100-SXM4-40GB"),), seed=str(tmp_path))
    simgpu.write(halves, tmp_path / "machine")
    bare = {**os.environ, **simgpu.environment(tmp_path / "machine")}
    made = subprocess.check_output([sys.executable, "-c", PARTITION, TWO_HALVES], env=bare, text=True)
    one, two = (uuid for uuid, _ in json.loads(made))
    write_container(
        tmp_path, Limits(devices=tuple(DeviceLimit(uuid=uuid, memory_bytes=3000 * MIB) for uuid in (two, one)))
    )
    box = Container(tmp_path, halves, Limits(devices=()))
    cases = {
        None: two, "0": two, "1": one, "0,1": two, "1,0": one, one: one, two: two, one[:9]: one, f"{one},{two}": one,
        one.lower(): one, "": None, "2": None, "MIG-": None, "GPU-" + one[4:]: None, f"none,{one}": None,
    }  # fmt: skip
    for seen, (wanted, chosen) in zip(answers(NAMES, list(cases), box.environment()), cases.items(), strict=True):
        (init, _, count), devices, *_ = seen
        assert (init, count) == ((0, 1) if chosen else (100, 0)), wanted
        if chosen:
            assert devices[1][0][1] == chosen[4:].replace("-", ""), wanted


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
