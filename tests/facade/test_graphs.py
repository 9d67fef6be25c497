"""Memory that graphs allocate counts from their first launch or upload on, as what the driver holds for them."""

from tests.facade.conftest import CONTEXT, MIB, MakeContainer
from tests.facade.python_programs import python

LIMIT = 2000
GRAPHS = f"""
import pathlib
from lamina_lab import simgpu
begin()
stream, at = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuStreamCreate(ctypes.byref(stream), 0)
def held():
    counted = {LIMIT - CONTEXT // MIB} - free()[1]
    really = simgpu.read(pathlib.Path(os.environ["SIMGPU_MACHINE"])).gpus[0].used_mib - {CONTEXT // MIB}
    return counted if counted == really else (counted, really)
def capture(*amounts, keep=False, flags=0):
    "Allocates and frees each amount in turn, in MiB; the last one may be kept."
    graph, run, codes = ctypes.c_void_p(), ctypes.c_void_p(), []
    cuda.cuStreamBeginCapture_v2(stream, 0)
    for i, mib in enumerate(amounts):
        codes.append(cuda.cuMemAllocAsync(ctypes.byref(at), ctypes.c_size_t(mib << 20), stream))
        if not keep or i < len(amounts) - 1:
            codes.append(cuda.cuMemFreeAsync(at, stream))
    codes.append(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
    codes.append(cuda.cuGraphInstantiateWithFlags(ctypes.byref(run), graph, ctypes.c_uint64(flags)))
    assert not any(codes), codes
    return graph, run
def launch(run, on=stream):
    return cuda.cuGraphLaunch(run, on)
def end(graph, run):
    return cuda.cuGraphDestroy(graph) or cuda.cuGraphExecDestroy(run)
"""


KERNELS = """
module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuModuleLoadData(ctypes.byref(module), b"simgpu")
cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"spin")
def spend(ns):
    time = ctypes.c_uint64(ns)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(time))
    assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, None) == 0
def context():
    current = ctypes.c_void_p()
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(current), 0)
    return current
"""


def reported(container: MakeContainer, script: str) -> list[str]:
    done = python(container(LIMIT), GRAPHS + script)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_graph_counts_when_it_runs_as_what_the_driver_holds(container: MakeContainer) -> None:
    script = """
graph, run = capture(1000, 1000, 1500)
print(held(), launch(run), held(), launch(run), held(), cuda.cuGraphUpload(run, stream), held())
print(end(graph, run), held(), cuda.cuDeviceGraphMemTrim(0), held())
graph, run = capture(100)
print(cuda.cuGraphUpload(run, stream), held())
"""
    assert reported(container, script) == ["0 0 1500 0 1500 0 1500", "0 1500 0 0", "0 100"]


def test_graphs_share_memory(container: MakeContainer) -> None:
    script = """
first, second, large = capture(500), capture(600), capture(1600)
other = ctypes.c_void_p()
cuda.cuStreamCreate(ctypes.byref(other), 0)
print(launch(first[1]), held(), launch(second[1]), held(), launch(first[1], other), held())
print(launch(large[1]), held(), launch(second[1]), held())
"""
    # With 1600 kept, 600 more might be needed: so what is kept is given back first.
    assert reported(container, script) == ["0 500 0 600 0 600", "0 1600 0 600"]


def test_a_graph_over_the_limit_is_refused_when_it_would_run(container: MakeContainer) -> None:
    script = """
graph, run = capture(1698)
print(launch(run), held(), take(1690), held(), capture(100) and 0)
"""
    box = container(LIMIT)
    done = python(box, GRAPHS + script)
    assert done.stdout == "2 0 0 1690 0\n", done.stderr
    assert f"OOM {2001 * MIB} / {LIMIT * MIB}" in done.stderr


def test_memory_that_graphs_only_cache_is_released(container: MakeContainer) -> None:
    script = """
graph, run = capture(1000)
print(launch(run), held(), take(1200), held(), launch(run), held())
"""
    assert reported(container, script) == ["0 1000 0 1200 2 1200"]


def test_a_launch_at_the_limit_waits_for_graphs_that_end(container: MakeContainer) -> None:
    """What a graph that still runs holds can serve the next one in its stream."""
    script = """
small, large = capture(1000), capture(1500)
spend(300_000_000)
print(launch(small[1]))
spend(300_000_000)
print(launch(large[1]), held())
"""
    assert reported(container, KERNELS + script) == ["0", "0 1500"]


def test_a_launch_at_the_limit_does_not_wait_for_its_own_thread(container: MakeContainer) -> None:
    """Behind a host function that waits for what the thread does next, it is refused, and others are launched."""
    script = """
import threading
large, other = capture(1900), capture(100)
flag, ends = threading.Event(), []
waiting = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: ends.append(flag.wait(60)))
second = ctypes.c_void_p()
cuda.cuStreamCreate(ctypes.byref(second), 1)
cuda.cuLaunchHostFunc(stream, waiting, None)
meanwhile = []
def launch_meanwhile():
    meanwhile.append([cuda.cuCtxSetCurrent(context()), launch(other[1], second), ends[:]])
thread = threading.Thread(target=launch_meanwhile)
thread.start()
print(launch(large[1]), ends)
thread.join()
print(*meanwhile)
flag.set()
print(cuda.cuStreamSynchronize(stream), ends)
"""
    assert reported(container, KERNELS + script) == ["2 []", "[0, 0, []]", "0 [True]"]


def test_an_allocation_that_no_node_frees_outlives_its_graph(container: MakeContainer) -> None:
    script = """
graph, run = capture(200, 1000, keep=True)
print(launch(run), held(), launch(run), held(), end(graph, run), cuda.cuDeviceGraphMemTrim(0), held(), take(700))
print(cuda.cuMemFreeAsync(at, stream), held(), cuda.cuDeviceGraphMemTrim(0), held(), take(700))
"""
    assert reported(container, script) == ["0 1000 1 1000 0 0 1000 2", "0 1000 0 0 0"]


def test_what_is_left_may_be_freed_by_the_next_launch_or_with_the_context(container: MakeContainer) -> None:
    script = """
graph, run = capture(1000, keep=True, flags=1)
print(launch(run), launch(run), held(), cuda.cuMemFree_v2(at), launch(run), held(), end(graph, run))
print(cuda.cuDevicePrimaryCtxReset_v2(0), begin(), held())
"""
    assert reported(container, script) == ["0 0 1000 0 0 1000 0", "0 (0, 0, 0) 0"]


def test_nodes_added_by_hand_count_too(container: MakeContainer) -> None:
    script = """
graph, run, node, params = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_uint64 * 15)()
def add(mib):
    params[0], params[1], params[13] = 1, 1, mib << 20   # pinned memory on device 0
    return cuda.cuGraphAddMemAllocNode(ctypes.byref(node), graph, None, ctypes.c_size_t(0), params)
def free_node(at):
    return cuda.cuGraphAddMemFreeNode(ctypes.byref(node), graph, None, ctypes.c_size_t(0), ctypes.c_uint64(at))
print(cuda.cuGraphCreate(ctypes.byref(graph), 0), add(1000), free_node(params[14]), add(900), free_node(params[14]))
uploading = (ctypes.c_uint64 * 4)(2, stream.value)
print(cuda.cuGraphInstantiateWithParams(ctypes.byref(run), graph, uploading), held(), launch(run), held())
print(end(graph, run), cuda.cuDeviceGraphMemTrim(0), held())
"""
    assert reported(container, script) == ["0 0 0 0 0", "0 1000 0 1000", "0 0 0"]
