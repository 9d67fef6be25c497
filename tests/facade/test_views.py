"""Everything that tells about devices and memory tells the same: what the container was granted and holds."""

import json
import os
import subprocess
import sys

import pytest

from lamina import native
from lamina_lab import simgpu
from tests.facade.conftest import CONTEXT, MIB, PRELUDE, MakeContainer
from tests.facade.nvml_programs import NVML, ask
from tests.facade.python_programs import python


def test_all_views_agree(container: MakeContainer) -> None:
    script = """
begin(), take(500)
left, total, device = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t()
cuda.cuMemGetInfo_v2(ctypes.byref(left), ctypes.byref(total)), cuda.cuDeviceTotalMem_v2(ctypes.byref(device), 0)
one, two = nvml.nvmlDeviceGetMemoryInfo(devices()[0]), nvml.nvmlDeviceGetMemoryInfo(devices()[0], nvml.nvmlMemory_v2)
listed = nvml.nvmlDeviceGetComputeRunningProcesses(devices()[0])
print(json.dumps([[left.value, total.value], device.value, [one.free, one.total, one.used],
    [two.free, two.total, two.used, two.reserved], [[p.pid - os.getpid(), p.usedGpuMemory] for p in listed]]))
"""
    held, limit = CONTEXT + 500 * MIB, 2000 * MIB
    assert ask(container(2000), script) == [
        [limit - held, limit], limit, [limit - held, limit, held], [limit - held, limit, held, 0], [[0, held]],
    ]  # fmt: skip


def test_the_dead_are_not_shown(container: MakeContainer) -> None:
    box = container(2000)
    assert python(box, "print(begin(), take(500)); os.kill(os.getpid(), 9)").returncode == -9
    used = "print(nvml.nvmlDeviceGetMemoryInfo(devices()[0]).used)"
    assert ask(box, used) == 0
    assert ask(box, "print(len(nvml.nvmlDeviceGetComputeRunningProcesses(devices()[0])))") == 0


def test_processes_of_others_are_not_shown(container: MakeContainer, tmp_path_factory) -> None:
    box = container(2000)
    outside = {**os.environ, "SIMGPU_MACHINE": str(box.folder / "machine")}
    driver = str(simgpu.library("libcuda.so.1"))
    script = PRELUDE.replace("libcuda.so.1", driver) + "print(begin(), flush=True); sys.stdin.read()"
    other = subprocess.Popen([sys.executable, "-c", script], env=outside, stdin=-1, stdout=-1, text=True)
    try:
        assert other.stdout is not None and other.stdout.readline() == "(0, 0, 0)\n"
        assert box.really_held() == CONTEXT
        listed = "print(json.dumps([len(nvml.nvmlDeviceGetComputeRunningProcesses(devices()[0])),"
        shown = ask(box, listed + "nvml.nvmlDeviceGetMemoryInfo(devices()[0]).used,"
                         f"code(nvml.nvmlSystemGetProcessName, {other.pid})]))")  # fmt: skip
        assert shown == [0, 0, 6]
    finally:
        other.kill()
        other.wait()


def test_only_granted_gpus_exist(container: MakeContainer) -> None:
    box = container(2000, gpus=4, granted=(1, 3))
    script = f"""
count = ctypes.c_int()
cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count))
uuids = [nvml.nvmlDeviceGetUUID(d) for d in devices()]
buses = [nvml.nvmlDeviceGetPciInfo(d).busId for d in devices()]
print(json.dumps([count.value, uuids, [nvml.nvmlDeviceGetIndex(d) for d in devices()],
    code(nvml.nvmlDeviceGetHandleByIndex, 2), code(nvml.nvmlDeviceGetHandleByUUID, {box.uuids[0]!r}),
    code(nvml.nvmlDeviceGetHandleByUUID, {box.uuids[3]!r}), code(nvml.nvmlDeviceGetHandleByPciBusId, buses[1]),
    code(nvml.nvmlDeviceGetHandleByPciBusId, '00000000:0A:00.0')]))
"""
    assert ask(box, script) == [2, [box.uuids[1], box.uuids[3]], [0, 1], 2, 6, 0, 0, 6]


VISIBLE = """
count, seen = ctypes.c_int(), []
code = cuda.cuInit(0)
cuda.cuDeviceGetCount(ctypes.byref(count))
for i in range(count.value):
    uuid = (ctypes.c_ubyte * 16)()
    cuda.cuDeviceGetUuid(uuid, i)
    seen.append(bytes(uuid).hex())
print(code, *seen, sep=",")
"""


@pytest.mark.parametrize(
    ("wanted", "seen"),
    [
        (None, [1, 3]), ("0", [1]), ("1,0", [3, 1]), ("1", [3]), ("0,2,1", [1]), ("2", []), ("", []), ("-1", []),
        ("UUID3", [3]), ("UUID3,UUID1", [3, 1]), ("UUID0", []), ("UUID3,UUID2,UUID1", [3]), (" 0 , 1 ", [1, 3]),
        ("NoDevFiles", []),
    ],
)  # fmt: skip
def test_visible_devices_choose_among_the_granted(
    wanted: str | None, seen: list[int], container: MakeContainer
) -> None:
    box = container(2000, gpus=4, granted=(1, 3))
    more = {}
    if wanted is not None:
        for number, uuid in enumerate(box.uuids):
            wanted = wanted.replace(f"UUID{number}", uuid)
        more["CUDA_VISIBLE_DEVICES"] = wanted
    done = python(box, VISIBLE, **more)
    code, *uuids = done.stdout.strip().split(",")
    assert [uuid for uuid in uuids if uuid] == [box.uuids[i][4:].replace("-", "") for i in seen], done.stderr
    assert code == ("0" if seen else "100")


def test_each_gpu_has_its_own_limit_whatever_its_ordinal(container: MakeContainer) -> None:
    box = container(2000, gpus=4, granted=(1, 3))
    done = python(box, "print(begin(), take(1000), take(1000), free())", CUDA_VISIBLE_DEVICES="1")
    assert done.stdout == "(0, 0, 0) 0 2 (0, 697)\n"
    assert done.stderr.startswith("[lamina] Device 0 OOM ")
    assert [device.refusals for device in box.usage().devices] == [0, 1]


def test_a_tenant_cannot_change_the_card(container: MakeContainer) -> None:
    script = """
begin()
card = devices()[0]
print(json.dumps([code(nvml.nvmlDeviceSetComputeMode, card, 0), code(nvml.nvmlDeviceSetMigMode, card, 1),
    code(nvml.nvmlDeviceSetPowerManagementLimit, card, 100000), cuda.cuMemAllocPitch(*[None] * 5)]))
"""
    assert ask(container(2000), script) == [4, 4, 4, 801]


def test_what_is_forbidden_says_whether_the_process_has_begun(container: MakeContainer) -> None:
    """As each function of the driver does, also in a forked child, which has to begin again."""
    script = """
def forbidden():
    return [cuda.cuMemAllocPitch(*[None] * 5), cuda.cuArrayCreate(None, None)]
codes = [forbidden()]
begin()
codes.append([*forbidden(), *forbidden()][:2])
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, json.dumps(forbidden()).encode())
    os._exit(0)
print(json.dumps([*codes, json.loads(os.read(reader, 100))]))
"""
    done = python(container(2000), NVML + script)
    assert json.loads(done.stdout) == [[3, 3], [801, 801], [3, 3]], done.stderr
    said = [line for line in done.stderr.splitlines() if "not permitted" in line]
    assert said == [
        f"[lamina] {name} is not permitted in a container with limits" for name in ("cuMemAllocPitch", "cuArrayCreate")
    ]


def test_functions_that_the_driver_lacks_are_not_found(container: MakeContainer) -> None:
    script = """
library = ctypes.CDLL("libnvidia-ml.so.1")
begin()
print(json.dumps([hasattr(library, "nvmlDeviceReadPRMCounters_v1"), hasattr(cuda, "cuLogsCurrent")]))
"""
    assert ask(container(2000), script) == [False, False]


def test_functions_that_the_driver_lacks_are_errors_in_the_facade_as_it_was_built(container: MakeContainer) -> None:
    script = """
nvml = ctypes.CDLL("libnvidia-ml.so.1")
begin()
print(nvml.nvmlDeviceReadPRMCounters_v1(None), cuda.cuLogsCurrent(None, 0))
"""
    built = f"{native.path('facade/libcuda.so.1')}:{native.path('facade/libnvidia-ml.so.1')}"
    command = [sys.executable, "-c", PRELUDE + script]
    variables = container(2000).environment() | {"LD_PRELOAD": built}
    assert subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout == "13 801\n"
