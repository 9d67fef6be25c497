"""Objects of a program that graphs keep: its function is called when the last reference is gone."""

import pytest

from tests.simgpu.machines import Machine, Process

INVALID = 1
SETUP = """(
    globals().update(gone=[], graph=c_void_p(), copy=c_void_p(), thing=c_void_p()),
    globals().update(destroy=__import__("ctypes").CFUNCTYPE(None, c_void_p)(lambda data: gone.append(data))),
    cu.cuGraphCreate(byref(graph), 0),
    cu.cuUserObjectCreate(byref(thing), c_void_p(7), destroy, 2, 1),
)[2:]""".replace("\n", " ")


@pytest.fixture
def process(machine: Machine) -> Process:
    started = machine.started()
    assert started(SETUP) == (0, 0)
    return started


def test_the_programs_function_is_called_when_the_last_reference_is_gone(process: Process) -> None:
    assert process("(cu.cuUserObjectRetain(thing, 3), cu.cuUserObjectRelease(thing, 4), gone)") == (0, 0, [])
    assert process("(cu.cuUserObjectRelease(thing, 1), gone)") == (0, [7])


def test_a_graph_and_its_clones_keep_it(process: Process) -> None:
    assert process("(cu.cuGraphRetainUserObject(graph, thing, 1, 0), cu.cuUserObjectRelease(thing, 2), gone)") == (
        0,
        0,
        [],
    )
    assert process("(cu.cuGraphClone(byref(copy), graph), cu.cuGraphDestroy(graph), gone)") == (0, 0, [])
    assert process("(cu.cuGraphDestroy(copy), gone)") == (0, [7])


def test_a_graph_that_runs_keeps_it(process: Process) -> None:
    assert process("(cu.cuGraphRetainUserObject(graph, thing, 2, 1), gone)") == (0, [])  # moved
    assert process("(cu.cuGraphInstantiateWithFlags(byref(copy), graph, c_size_t(0)), cu.cuGraphDestroy(graph))") == (
        0,
        0,
    )
    assert process("(list(gone), cu.cuGraphExecDestroy(copy), gone)") == ([], 0, [7])


def test_a_graph_gives_back_no_more_than_it_has(process: Process) -> None:
    assert process("cu.cuGraphReleaseUserObject(graph, thing, 1)") == INVALID
    assert process("cu.cuGraphRetainUserObject(graph, thing, 2, 1)") == 0
    assert process("cu.cuGraphReleaseUserObject(graph, thing, 3)") == INVALID
    assert process("(cu.cuGraphReleaseUserObject(graph, thing, 2), gone, cu.cuGraphDestroy(graph))") == (0, [7], 0)


@pytest.mark.parametrize(
    "call",
    [
        "cu.cuUserObjectCreate(None, None, destroy, 1, 1)", "cu.cuUserObjectCreate(byref(copy), None, None, 1, 1)",
        "cu.cuUserObjectCreate(byref(copy), None, destroy, 0, 1)",
        "cu.cuUserObjectCreate(byref(copy), None, destroy, 1, 0)",
        "cu.cuUserObjectRetain(thing, 0)", "cu.cuUserObjectRetain(None, 1)", "cu.cuUserObjectRelease(thing, 3)",
        "cu.cuGraphRetainUserObject(None, thing, 1, 0)", "cu.cuGraphRetainUserObject(graph, thing, 1, 2)",
    ],
)  # fmt: skip
def test_wrong_arguments_change_nothing(call: str, process: Process) -> None:
    assert process(f"({call}, gone)") == (INVALID, [])
