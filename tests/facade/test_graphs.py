"""Memory that graphs allocate counts from capture on, as the most that they hold at once, until they are gone."""

from tests.facade.conftest import MIB, MakeContainer
from tests.facade.test_processes import python

GRAPHS = """
begin()
stream, graph, run, at = (ctypes.c_void_p() for _ in range(4))
cuda.cuStreamCreate(ctypes.byref(stream), 0)
def capture(*amounts):
    codes = []
    cuda.cuStreamBeginCapture_v2(stream, 0)
    for mib in amounts:
        codes.append(cuda.cuMemAllocAsync(ctypes.byref(at), ctypes.c_size_t(mib << 20), stream))
        if codes[-1] == 0:
            cuda.cuMemFreeAsync(at, stream)
    codes.append(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
    return codes
"""


def test_a_captured_graph_counts_as_the_most_it_holds_at_once(container: MakeContainer) -> None:
    script = """
print(capture(1000, 1000, 1500), free())
print(take(300), cuda.cuGraphInstantiateWithFlags(ctypes.byref(run), graph, 0), cuda.cuGraphDestroy(graph), free())
print(cuda.cuGraphExecDestroy(run), free())
"""
    done = python(container(2000), GRAPHS + script)
    assert done.stdout.splitlines() == ["[0, 0, 0, 0] (0, 197)", "2 0 0 (0, 197)", "0 (0, 1697)"], done.stderr


def test_a_captured_allocation_over_the_limit_is_refused(container: MakeContainer) -> None:
    box = container(2000)
    done = python(box, GRAPHS + "print(capture(1000, 1698)[:2], cuda.cuGraphDestroy(graph), free())")
    assert done.stdout == "[0, 2] 0 (0, 1697)\n", done.stderr
    assert f"OOM {2001 * MIB} / {2000 * MIB}" in done.stderr


def test_a_node_added_by_hand_counts_too(container: MakeContainer) -> None:
    script = """
node, params = ctypes.c_void_p(), (ctypes.c_uint64 * 15)()
def add(mib):
    params[0], params[1], params[13] = 1, 1, mib << 20   # pinned memory on device 0
    code = cuda.cuGraphAddMemAllocNode(ctypes.byref(node), graph, None, ctypes.c_size_t(0), params)
    return code, params[14]
cuda.cuGraphCreate(ctypes.byref(graph), 0)
first, second = add(1000), add(1000)
print(first[0], second[0], free())
cuda.cuGraphAddMemFreeNode(ctypes.byref(node), graph, ctypes.byref(node), ctypes.c_size_t(1), ctypes.c_uint64(first[1]))
print(add(900)[0], free(), cuda.cuGraphDestroy(graph), free())
"""
    done = python(container(2000), GRAPHS + script)
    assert done.stdout.splitlines() == ["0 2 (0, 697)", "0 (0, 697) 0 (0, 1697)"], done.stderr
