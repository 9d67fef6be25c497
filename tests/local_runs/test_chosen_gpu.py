"""Which GPU a run gets: `--gpu`, and CUDA_VISIBLE_DEVICES of the shell, on a machine whose fastest GPU is not the first
that nvidia-smi lists. A program has it as device 0."""

import sys
from pathlib import Path

import pytest

from lamina.enforcement.run import run
from lamina.enforcement.run_machine import VISIBLE, find_machine
from lamina.errors import BadInput
from tests.worlds.runs import machine_of, private_folder

MODELS = ("T4", "T4", "A10")
"""CUDA counts the A10 first, unless CUDA_DEVICE_ORDER says otherwise."""


@pytest.fixture
def uuids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    private_folder(tmp_path, monkeypatch)
    return machine_of(tmp_path, monkeypatch, *MODELS)


def chosen(folder: Path, gpu: str) -> int:
    return find_machine(folder, gpu, None).gpu.index


@pytest.mark.parametrize(("gpu", "index"), [("", 0), ("0", 0), ("1", 1), ("2", 2), ("02", 2)])
def test_without_the_variable_gpus_are_counted_as_in_nvidia_smi(
    gpu: str, index: int, uuids: list[str], tmp_path: Path
) -> None:
    assert chosen(tmp_path, gpu) == index


def test_a_uuid_and_its_beginning_in_any_case_are_names(uuids: list[str], tmp_path: Path) -> None:
    for index, uuid in enumerate(uuids):
        for name in (uuid, uuid.upper(), uuid.lower(), uuid[:12]):
            assert chosen(tmp_path, name) == index


@pytest.mark.parametrize(
    ("listed", "order", "gpu", "index"),
    [
        ("0", "", "", 2), ("1", "", "", 0), ("2", "", "", 1), ("1,0", "", "", 0), ("0,9,1", "", "", 2),
        ("0", "PCI_BUS_ID", "", 0), ("1", "PCI_BUS_ID", "", 1), ("2", "PCI_BUS_ID", "", 2),
        ("1", "PCI_BUS_ID", "1", 1), ("0,1", "PCI_BUS_ID", "1", 1), ("1,0", "PCI_BUS_ID", "0", 0),
        ("0", "", "2", 2), ("{1}", "", "", 1), ("{1}", "", "1", 1), ("{2},{0}", "", "0", 0), ("{1:.12}", "", "", 1),
    ],
)  # fmt: skip
def test_the_variable_bounds_the_choice_as_cuda_reads_it(
    listed: str, order: str, gpu: str, index: int, uuids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, listed.format(*uuids))
    monkeypatch.setenv("CUDA_DEVICE_ORDER", order or "FASTEST_FIRST")
    assert chosen(tmp_path, gpu) == index


@pytest.mark.parametrize(("listed", "gpu"), [("1", "0"), ("1", "2"), ("1,0", "2"), ("2", "GPU-{0}")])
def test_a_gpu_that_the_variable_leaves_out_is_refused(
    listed: str, gpu: str, uuids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, listed)
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    with pytest.raises(
        BadInput, match=f"{VISIBLE}={listed} leaves it out; leave out --gpu, or name one of: {listed[0]}"
    ):
        chosen(tmp_path, gpu.format(uuids[0].removeprefix("GPU-")))


@pytest.mark.parametrize("listed", ["", "-1", "9", "NoDevFiles", "GPU-", "x"])
@pytest.mark.parametrize("gpu", ["", "1"])
def test_a_variable_that_leaves_nothing_is_refused(
    listed: str, gpu: str, uuids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, listed)
    with pytest.raises(BadInput, match=f"^{VISIBLE}={listed} leaves none of the GPUs of this machine"):
        chosen(tmp_path, gpu)


def test_an_ambiguous_beginning_is_refused_with_the_gpus_that_have_it() -> None:
    from lamina.enforcement.driver import LocalGpu, choose

    found = [LocalGpu(n, f"GPU-{uuid}", "T4", 15360) for n, uuid in enumerate(("aa1", "aa2", "bb1"))]
    with pytest.raises(BadInput, match=r"beginning of several UUIDs; name one of: 0 \(GPU-aa1\), 1 \(GPU-aa2\)$"):
        choose(found, "GPU-aa")
    assert choose(found, "GPU-b").index == 2


SEEN = """
import ctypes, os, sys, uuid
cuda, ident, count = ctypes.CDLL("libcuda.so.1"), (ctypes.c_ubyte * 16)(), ctypes.c_int()
cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), cuda.cuDeviceGetUuid_v2(ident, 0)
found = count.value, f"GPU-{uuid.UUID(bytes=bytes(ident))}", os.environ.get("CUDA_VISIBLE_DEVICES")
raise SystemExit(0 if found == (1, sys.argv[1], None) else f"{found}")
"""


@pytest.mark.parametrize(("listed", "gpu", "index"), [(None, "1", 1), ("1", "1", 1), ("1", "", 1), ("0,2", "2", 2)])
def test_the_program_has_the_chosen_gpu_as_device_0_and_no_other(
    listed: str | None, gpu: str, index: int, uuids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    if listed is not None:
        monkeypatch.setenv(VISIBLE, listed)
    assert run([sys.executable, "-c", SEEN, uuids[index]], memory="25%", gpu=gpu) == 0


@pytest.mark.parametrize(("gpu", "listed", "index"), [("", None, 0), ("1", None, 1), ("", "1", 1), ("1", "1", 1)])
def test_simulated_machines_with_several_gpus_are_the_same(
    gpu: str, listed: str | None, index: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private_folder(tmp_path, monkeypatch)
    if listed is not None:
        monkeypatch.setenv(VISIBLE, listed)
    assert find_machine(tmp_path, gpu, "2xT4").gpu.index == index


@pytest.mark.parametrize(("simulate", "why"), [
    ("0xT4", "count is 0"), ("17xT4", "at most 16"), ("2xT9", "no GPU model 'T9'"), ("x T4", "no GPU model"),
    ("2xT4@1.0", "no known CUDA version"),
])  # fmt: skip
def test_machines_that_cannot_be_simulated_are_one_sentence(simulate: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=why) as wrong:
        find_machine(tmp_path, "", simulate)
    assert len(str(wrong.value).splitlines()) == 1
