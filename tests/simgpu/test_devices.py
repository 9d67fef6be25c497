"""Which devices a process sees, and what it learns before it may ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina_lab import simgpu
from tests.building import compile_program
from tests.simgpu.machines import V100, Machine
from tests.waiting import wait_until

NO_DEVICE, NOT_INITIALIZED, INVALID_DEVICE, INVALID_CONTEXT = 100, 3, 101, 201
T4S = "gpus:\n- {model: T4, count: 4}\n"


@pytest.fixture
def four(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "machine", T4S)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("cuda", "nvidia", "expected"),
    [
        (None, None, [0, 1, 2, 3]),
        (None, "all", [0, 1, 2, 3]),
        ("2,0", None, [2, 0]),
        ("1,x,2", None, [1]),
        ("9,1", None, []),
        ("-1", None, []),
        ("", None, []),
        ("1,1", None, []),
        ("{2},{0}", None, [2, 0]),
        ("{2p}", None, [2]),
        (None, "{3},{1}", [1, 3]),
        ("1", "{3},{1}", [3]),
        ("{0},1", "{3},{1}", []),
        (None, "none", []),
        (None, "void", []),
        (None, "", []),
        (None, "2", [2]),
    ],
)
def test_visible_devices(four: Machine, cuda: str | None, nvidia: str | None, expected: list[int]) -> None:
    uuids = [gpu.uuid for gpu in four.state().gpus]
    names = {str(i): uuid for i, uuid in enumerate(uuids)} | {"2p": uuids[2][:12]}

    def fill(text: str) -> str:
        for key, value in names.items():
            text = text.replace(f"{{{key}}}", value)
        return text

    env = {}
    if cuda is not None:
        env["CUDA_VISIBLE_DEVICES"] = fill(cuda)
    if nvidia is not None:
        env["NVIDIA_VISIBLE_DEVICES"] = fill(nvidia)
    process = four.process(**env)
    assert process("init()") == (0 if expected else NO_DEVICE)
    assert process("uuids()") == [uuids[i] for i in expected]


@pytest.mark.parametrize("content", [None, b"", b"nonsense" * 1000])
def test_without_a_machine_there_is_no_device(machine: Machine, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other"
    if content is not None:
        path.write_bytes(content)
    assert machine.process(SIMGPU_MACHINE=str(path))("(init(), count())") == (NO_DEVICE, (NOT_INITIALIZED, -1))
    assert machine.process(SIMGPU_MACHINE="")("(init(), start())") == (NO_DEVICE, NO_DEVICE)


def test_questions_before_init_and_without_context(machine: Machine) -> None:
    process = machine.process()
    assert process("count()")[0] == NOT_INITIALIZED
    assert process("alloc(1)")[0] == NOT_INITIALIZED
    assert process("spin(1)") == NOT_INITIALIZED
    assert process("init()") == 0
    assert process("init()") == 0
    assert process("cu.cuInit(1)") == 1
    assert process("alloc(1)")[0] == INVALID_CONTEXT
    assert process("primary(7)") == INVALID_DEVICE
    assert machine.used() == 0


def test_a_forked_child_must_initialize_again(machine: Machine) -> None:
    process = machine.started()
    assert process("alloc(100)")[0] == 0
    assert process("in_child('(count()[0], alloc(1)[0])')") == str((NOT_INITIALIZED, NOT_INITIALIZED))
    assert process("in_child('(start(), alloc(100)[0], used())')") == str((0, 0, 2 * (303 + 100)))
    assert process("alloc(10)[0]") == 0
    wait_until(lambda: process("used()") == 303 + 100 + 10)


def test_names_and_numbers_of_a_card(machine: Machine) -> None:
    process = machine.started()
    assert process("(lambda b: (cu.cuDeviceGetName(b, 64, 0), b.value))(ctypes.create_string_buffer(64))") == (
        0,
        b"Tesla V100-SXM2-16GB",
    )
    attributes = {16: 80, 75: 7, 76: 0, 39: 2048, 10: 32, 1: 1024, 115: 1, 102: 1}
    for attribute, value in attributes.items():
        asked = f"(lambda v: (cu.cuDeviceGetAttribute(byref(v), {attribute}, 0), v.value))(c_int())"
        assert process(asked) == (0, value), attribute
    assert process("cu.cuDeviceGetAttribute(byref(c_int()), 9999, 0)") == 1
    assert process("(lambda v: (cu.cuDriverGetVersion(byref(v)), v.value))(c_int())") == (0, 11070)


def test_a_card_has_the_pci_numbers_that_nvml_reports(machine: Machine) -> None:
    process = machine.started()
    for attribute in (139, 140):
        asked = f"(lambda v: (cu.cuDeviceGetAttribute(byref(v), {attribute}, 0), hex(v.value)))(c_int())"
        assert process(asked)[1].endswith("10de"), attribute


@pytest.mark.parametrize(("cuda", "code"), [("12.4", 1), ("12.5", 0), ("13.0", 0)])
def test_work_shared_with_graphics_is_a_limit_since_cuda_12_5(tmp_path: Path, cuda: str, code: int) -> None:
    machine = Machine(tmp_path / "machine", f"cuda: '{cuda}'\n{V100}")
    process = machine.started()
    assert [process(f"limit({number})")[0] for number in (6, 7, 8, 9, 10)] == [0, code, code, code, 1]
    assert process("limit(8)[1]") == 0
    assert process("[cu.cuCtxSetLimit(n, c_size_t(0)) for n in (7, 8)]") == [code or 215] * 2
    machine.close()


def test_a_lost_gpu_gives_no_context(machine: Machine) -> None:
    uuid = machine.state().gpus[0].uuid
    simgpu.set_lost(machine.path, uuid, True)
    process = machine.process()
    assert process("start()") == 46
    simgpu.set_lost(machine.path, uuid, False)
    assert process("start()") == 0


def test_three_entry_points_of_the_driver(machine: Machine, tmp_path: Path) -> None:
    library = str(simgpu.library("libcuda.so.1"))
    done = machine.run(str(compile_program(tmp_path, "ways", ["native/tests/simgpu_ways.c", library])))
    assert (done.returncode, done.stdout.splitlines()) == (0, ["ok linked", "ok dlsym", "ok cuGetProcAddress"])
    assert machine.state().gpus[0].used_mib in (0, 303)
