"""The programs that lab containers find, run as the seeds' manifests run them."""

import re
import subprocess
from pathlib import Path

import pytest

from lamina_lab.programs import install
from tests.simgpu.machines import Machine


@pytest.fixture
def container(machine: Machine, tmp_path: Path) -> Machine:
    install(tmp_path / "bin", tmp_path / "root")
    install(tmp_path / "bin", tmp_path / "root")  # again, as for a second container
    machine.env["PATH"] = f"{tmp_path / 'bin'}:{machine.env['PATH']}"
    return machine


def run(machine: Machine, command: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return machine.run("bash", "-c", command, **env)


def test_the_seeds_command(container: Machine) -> None:
    done = run(container, "nvidia-smi;python3 /gpu_torch.py;echo ended $?")
    assert "NVIDIA-SMI 515.86.01" in done.stdout
    assert "GPU is available with Tesla V100-SXM2-16GB\n" in done.stdout
    assert done.stdout.endswith("ended 0\n"), done.stderr


def test_gpu_torch_runs_out_of_memory_like_torch(container: Machine) -> None:
    process = container.started()
    assert process("alloc(15500)")[0] == 0
    done = run(container, "python3 /gpu_torch.py")
    assert done.returncode == 1
    assert done.stdout == "GPU is available with Tesla V100-SXM2-16GB\n"
    assert "\nRuntimeError: CUDA error: out of memory\n" in done.stderr


def test_gpu_torch_without_a_gpu(container: Machine) -> None:
    done = run(container, "python3 /gpu_torch.py", NVIDIA_VISIBLE_DEVICES="void")
    assert (done.returncode, done.stdout) == (1, "GPU is not available\n")


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("python3 -c 'import sys; print(sys.argv)' a 'b c'", "['-c', 'a', 'b c']"),
        ("python3 -u -c 'print(1)'", "1"),
        ("echo 'print(2)' | python3", "2"),
        ("echo 'print(3)' | python3 -", "3"),
    ],
)
def test_python_is_python(container: Machine, command: str, output: str) -> None:
    assert run(container, command).stdout.strip() == output


def test_a_script_that_is_nowhere(container: Machine) -> None:
    done = run(container, "python3 /no/such/script.py")
    assert done.returncode == 2
    assert "/no/such/script.py" in done.stderr


def test_gpu_load_reports_its_share(container: Machine) -> None:
    done = run(container, "gpu-load --seconds 0.5 --kernel-ms 2 --memory-mib 10")
    share = re.fullmatch(r"GPU 0: ([\d.]+) % of [\d.]+ s \(\d+ kernels of 2 ms\)\n", done.stdout)
    assert share is not None, done.stdout + done.stderr
    assert 60 <= float(share[1]) <= 100.1
    refused = run(container, "gpu-load --seconds 0.5 --memory-mib 100000")
    assert (refused.returncode, refused.stdout) == (1, "gpu-load: cuMemAlloc_v2 failed with error 2: out of memory\n")
