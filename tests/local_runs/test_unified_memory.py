"""GPUs that use the host's memory, such as that of a DGX Spark: NVML does not answer questions about it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from lamina.enforcement.driver_query import ask_gpus, gpus
from lamina_lab import simgpu
from tests.facade.conftest import CONTEXT, MIB, MakeContainer, make_container
from tests.facade.nvml_programs import ask
from tests.worlds.runs import holding, machine_of, private_folder, running

MODEL, MEMORY_MIB = "A10", 23028


@pytest.fixture
def uuid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    private_folder(tmp_path, monkeypatch)
    (found,) = machine_of(tmp_path, monkeypatch, MODEL, unified_memory=True)
    return found


def test_cuda_says_how_much_memory_there_is(uuid: str) -> None:
    found = gpus(simgpu.driver_folder())
    assert [(gpu.uuid, gpu.memory_mib, gpu.used_mib) for gpu in found] == [(uuid, MEMORY_MIB, None)]
    assert ask_gpus(simgpu.driver_folder(), dict(os.environ)) == found


def test_a_gpu_that_the_variable_hides_is_known_too(uuid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert [gpu.memory_mib for gpu in gpus(simgpu.driver_folder())] == [MEMORY_MIB]


@pytest.mark.parametrize(("memory", "codes"), [("2000Mi", "0 2\n"), ("10%", "0 0\n")])
def test_a_run_has_its_limit(memory: str, codes: str, uuid: str) -> None:
    command = [sys.executable, "-m", "lamina", "run", "--memory", memory, "--", *holding(1000, 900)]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert done.stdout == codes, done.stderr


def test_lists_say_what_is_known(uuid: str) -> None:
    with running("--memory", "2000Mi"):
        done = subprocess.run(
            [sys.executable, "-m", "lamina", "gpus", "--local", "-o", "json"],
            capture_output=True,
            text=True,
            check=False,
        )
    (row,) = json.loads(done.stdout)
    assert (row["memoryMib"], row["memoryUsedMib"]) == (MEMORY_MIB, None), done.stdout


@pytest.fixture
def container(tmp_path: Path) -> MakeContainer:
    def make(mib: int):
        box = make_container(tmp_path, mib)
        simgpu.write(replace(box.machine, unified_memory=True), tmp_path / "machine")
        return box

    return make


def test_in_a_container_nvml_has_the_limit_and_the_account(container: MakeContainer) -> None:
    script = """
begin(), take(500)
one, two = nvml.nvmlDeviceGetMemoryInfo(devices()[0]), nvml.nvmlDeviceGetMemoryInfo(devices()[0], nvml.nvmlMemory_v2)
print(json.dumps([[each.total, each.used, each.free] for each in (one, two)]))
"""
    held = CONTEXT + 500 * MIB
    assert ask(container(2000), script) == [[2000 * MIB, held, 2000 * MIB - held]] * 2
