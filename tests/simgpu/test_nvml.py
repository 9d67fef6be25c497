"""What NVML says of a simulated machine, through nvidia-ml-py."""

import subprocess
import sys

import pytest

from lamina_lab import simgpu
from tests.simgpu.machines import CONTEXT_MIB, TOTAL_MIB, Machine
from tests.simgpu.nvml_queries import PROBE, nvml
from tests.waiting import wait_until

NOT_SUPPORTED, DRIVER_NOT_LOADED, LOST, TIMEOUT, INVALID, NOT_FOUND, UNINITIALIZED = 3, 9, 15, 10, 2, 6, 1


def test_memory_and_processes_follow_what_is_held(machine: Machine) -> None:
    process = machine.started()
    assert process("alloc(1000)")[0] == 0
    held = CONTEXT_MIB + 1000
    view = "[nv.nvmlDeviceGetMemoryInfo(gpu0).{0} >> 20, nv.nvmlDeviceGetMemoryInfo(gpu0, nv.nvmlMemory_v2).{0} >> 20]"
    assert nvml(machine, view.format("total")) == [TOTAL_MIB] * 2
    assert nvml(machine, view.format("used")) == [held] * 2
    assert nvml(machine, view.format("free")) == [TOTAL_MIB - held] * 2
    assert nvml(machine, "(holders(gpu0), holders(gpu1))") == ({process.pid: held}, {})
    process.kill()
    assert nvml(machine, "holders(gpu0)") == {}
    assert machine.used() == 0


def test_utilization_is_the_busy_share_of_the_last_second(machine: Machine) -> None:
    process = machine.started()
    rates = "(nv.nvmlDeviceGetUtilizationRates(gpu0).gpu, nv.nvmlDeviceGetUtilizationRates(gpu1).gpu)"
    samples = "[(s.pid, s.smUtil) for s in nv.nvmlDeviceGetProcessUtilization(gpu0, 0)]"
    assert nvml(machine, rates) == (0, 0)
    assert process("spin(10, 300)") == 0
    wait_until(lambda: nvml(machine, rates)[0] >= 90)
    assert nvml(machine, rates)[1] == 0
    [(pid, share)] = nvml(machine, samples)
    assert pid == process.pid
    assert 90 <= share <= 100
    process.kill()
    wait_until(lambda: nvml(machine, rates)[0] < 50)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("nv.nvmlDeviceGetCount()", 2),
        ("nv.nvmlSystemGetDriverVersion()", "515.86.01"),
        ("nv.nvmlSystemGetCudaDriverVersion()", 11070),
        ("nv.nvmlDeviceGetName(gpu1)", "Tesla V100-SXM2-16GB"),
        ("nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByUUID(nv.nvmlDeviceGetUUID(gpu1)))", 1),
        ("nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleBySerial(nv.nvmlDeviceGetSerial(gpu1)))", 1),
        ("nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByPciBusId(nv.nvmlDeviceGetPciInfo(gpu1).busId))", 1),
        ("nv.nvmlDeviceGetMinorNumber(gpu1)", 1),
        ("nv.nvmlDeviceGetCudaComputeCapability(gpu0)", (7, 0)),
        ("nv.nvmlDeviceGetArchitecture(gpu0)", 5),
        ("nv.nvmlDeviceGetTopologyCommonAncestor(gpu0, gpu1)", 50),
        ("nv.nvmlDeviceGetTopologyCommonAncestor(gpu0, gpu0)", 0),
        ("nv.nvmlDeviceGetGraphicsRunningProcesses(gpu0)", []),
        ("nv.nvmlDeviceGetEnforcedPowerLimit(gpu0)", 300000),
        ("nv.nvmlDeviceGetFanSpeed(gpu0)", NOT_SUPPORTED),
        ("nv.nvmlDeviceGetMigMode(gpu0)", NOT_SUPPORTED),
        ("nv.nvmlDeviceGetHandleByUUID('GPU-0')", NOT_FOUND),
        ("nv.nvmlDeviceGetHandleByIndex(2)", INVALID),
        ("nv.nvmlShutdown() or nv.nvmlDeviceGetCount()", UNINITIALIZED),
        ("nv.nvmlEventSetWait_v2(nv.nvmlEventSetCreate(), 20)", TIMEOUT),
    ],
)
def test_answers(machine: Machine, expression: str, expected: object) -> None:
    assert nvml(machine, expression) == expected


def test_visible_devices_are_numbered_from_zero(machine: Machine) -> None:
    uuids = [gpu.uuid for gpu in machine.state().gpus]
    asked = "[(nv.nvmlDeviceGetUUID(gpu0), nv.nvmlDeviceGetIndex(gpu0), nv.nvmlDeviceGetMinorNumber(gpu0))]"
    assert nvml(machine, asked, NVIDIA_VISIBLE_DEVICES=uuids[1]) == [(uuids[1], 0, 1)]
    assert nvml(machine, "nv.nvmlDeviceGetCount()", NVIDIA_VISIBLE_DEVICES="void") == 0
    assert nvml(machine, "nv.nvmlDeviceGetCount()", CUDA_VISIBLE_DEVICES="1") == 2


def test_without_a_machine_the_driver_is_not_loaded(machine: Machine) -> None:
    assert nvml(machine, "0", SIMGPU_MACHINE="/nowhere") == DRIVER_NOT_LOADED


def test_an_xid_reaches_those_who_wait(machine: Machine) -> None:
    waiting = subprocess.Popen(
        [sys.executable, PROBE, "wait_for_event(gpu1, 10000)"], env=machine.env, stdout=subprocess.PIPE, text=True
    )
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "ready\n"
    simgpu.inject_xid(machine.path, machine.state().gpus[0].uuid, 13)
    simgpu.inject_xid(machine.path, machine.state().gpus[1].uuid, 79)
    assert eval(waiting.stdout.readline()) == (8, 79)
    assert waiting.wait() == 0
    waiting.stdout.close()


def test_a_lost_gpu_says_so(machine: Machine) -> None:
    simgpu.set_lost(machine.path, machine.state().gpus[0].uuid, True)
    assert nvml(machine, "nv.nvmlDeviceGetMemoryInfo(gpu0)") == LOST
    assert nvml(machine, "nv.nvmlDeviceGetMemoryInfo(gpu1).used") == 0
    simgpu.set_lost(machine.path, machine.state().gpus[0].uuid, False)
    assert nvml(machine, "nv.nvmlDeviceGetMemoryInfo(gpu0).used") == 0
