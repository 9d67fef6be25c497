"""Every kind of allocation, through its whole life: what the facade counts is what the simulated machine has charged,
and nothing is left however the memory goes."""

import pytest

from tests.facade.conftest import CONTEXT, MIB, Container, MakeContainer
from tests.facade.driver_libraries import generate
from tests.facade.python_programs import python

LIMIT = 2000
ROOM = 1664  # of 1697 MiB that a context leaves over, in steps of 32

# Kind of allocation: the functions of the table that make it, and with what else it goes. In the tools below,
# `take(mib)` gives a code and what `drop` wants.
KINDS = {
    "plain": ("cuMemAlloc_v2", "context"),
    "managed": ("cuMemAllocManaged", "context"),
    "pitch": ("cuMemAllocPitch_v2", "context"),
    "async": ("cuMemAllocAsync cuMemAllocAsync_ptsz", "context"),
    "pool": (
        "cuMemAllocFromPoolAsync cuMemAllocFromPoolAsync_ptsz cuMemPoolCreate cuMemGetDefaultMemPool cuMemGetMemPool",
        "context owner",
    ),
    "physical": ("cuMemCreate", ""),
    "mapped": ("cuMemMap cuMemRetainAllocationHandle", ""),
    "array": ("cuArrayCreate_v2 cuArray3DCreate_v2", "context"),
    "mipmap": ("cuMipmappedArrayCreate", "context"),
    "graph": (
        "cuGraphAddMemAllocNode cuGraphAddNode cuGraphAddNode_v2 cuGraphAddNode_v3 cuGraphLaunch cuGraphLaunch_ptsz "
        "cuGraphUpload cuGraphUpload_ptsz cuGraphInstantiate cuGraphInstantiate_v2 cuGraphInstantiateWithFlags "
        "cuGraphInstantiateWithParams cuGraphInstantiateWithParams_ptsz", "context owner",
    ),
    "context": (
        "cuCtxCreate cuCtxCreate_v2 cuCtxCreate_v3 cuCtxCreate_v4 cuDevicePrimaryCtxRetain cuGetExportTable", "",
    ),
    "heap": ("cuCtxSetLimit", "context"),
    "module": (
        "cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuModuleLoadFatBinary cuLibraryLoadData "
        "cuLibraryLoadFromFile", "context",
    ),
}  # fmt: skip
# These are between processes, in test_imports.py.
SHARED = {
    "cuIpcGetMemHandle", "cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle", "cuImportExternalMemory",
    "cuDestroyExternalMemory", "cuMemPoolExportPointer", "cuMemPoolImportPointer",
    "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle",
}  # fmt: skip
# These take nothing, but memory goes or may have gone.
ENDS = {
    "cuArrayDestroy", "cuMipmappedArrayDestroy", "cuCtxDestroy", "cuCtxDestroy_v2", "cuCtxDetach", "cuCtxSynchronize",
    "cuCtxSynchronize_v2", "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxReset",
    "cuDevicePrimaryCtxReset_v2", "cuDeviceGraphMemTrim", "cuEventSynchronize", "cuGraphAddMemFreeNode",
    "cuGraphDestroy", "cuGraphExecDestroy", "cuMemFreeAsync", "cuMemFreeAsync_ptsz", "cuMemFree_v2", "cuMemPoolDestroy",
    "cuMemPoolTrimTo", "cuMemRelease", "cuMemUnmap", "cuModuleUnload", "cuLibraryUnload", "cuStreamSynchronize",
    "cuStreamSynchronize_ptsz",
}  # fmt: skip

TOOLS = f"""
import pathlib, threading
from lamina_lab import simgpu
class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", ctypes.c_int), ("id", ctypes.c_int),
                ("rest", ctypes.c_char * 96)]
on_device = Properties(1, 0, 1, 0)
size, place, handle, ref = ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p, ctypes.byref
none = size(0)
def charged():
    return simgpu.read(pathlib.Path(os.environ["SIMGPU_MACHINE"])).gpus[0].used_mib
def held():
    "MiB beyond the context, as counted and as really charged."
    cuda.cuCtxSynchronize(), cuda.cuDeviceGraphMemTrim(0)
    counted, really = {LIMIT} - free()[1], charged()
    return counted - {CONTEXT // MIB} if counted == really else (counted, really)
def simple(call, *rest):
    def take(mib):
        at = place()
        return call(ref(at), size(mib << 20), *rest), at
    return take
def pitched(mib):
    at = place()
    return cuda.cuMemAllocPitch_v2(ref(at), ref(size()), size(4), size(mib << 11), 4), at
def from_pool(mib):
    pool, at = handle(), place()
    code = cuda.cuMemPoolCreate(ref(pool), ref(on_device))
    return code or cuda.cuMemAllocFromPoolAsync(ref(at), size(mib << 20), pool, None), (at, pool)
def created(mib):
    at = place()
    return cuda.cuMemCreate(ref(at), size(mib << 20), ref(on_device), 0), at
def mapped(mib):
    code, memory = created(mib)
    at = place()
    codes = [code, cuda.cuMemAddressReserve(ref(at), size(mib << 20), none, none, none)]
    if code == 0:
        codes += cuda.cuMemMap(at, size(mib << 20), none, memory, none), cuda.cuMemRelease(memory)
    return max(codes), (at, mib)
def shaped(call, *rest):
    def take(mib):
        array = handle()
        flat = (ctypes.c_size_t * 5)(4096, mib << 8, 0, 0x01 | 1 << 32)   # depth 0, bytes, one channel
        return call(ref(array), ref(flat), *rest), array
    return take
def flat(mib):
    array, shape = handle(), (ctypes.c_size_t * 3)(4096, mib << 8, 0x01 | 1 << 32)
    return cuda.cuArrayCreate_v2(ref(array), ref(shape)), array
def graphed(mib):
    stream, graph, run, at = handle(), handle(), handle(), place()
    cuda.cuStreamCreate(ref(stream), 0)
    codes = [cuda.cuStreamBeginCapture_v2(stream, 0), cuda.cuMemAllocAsync(ref(at), size(mib << 20), stream),
             cuda.cuStreamEndCapture(stream, ref(graph)), cuda.cuGraphInstantiateWithFlags(ref(run), graph, none),
             cuda.cuGraphLaunch(run, stream)]
    if any(codes):
        end_graph(graph, run)
    return max(codes), (at, graph, run)
def end_graph(graph, run):
    return cuda.cuGraphDestroy(graph) or cuda.cuGraphExecDestroy(run)
def contexts(mib):
    made, code = [], 0
    while code == 0 and len(made) * {CONTEXT // MIB} < mib:
        context = handle()
        code = cuda.cuCtxCreate_v2(ref(context), 0, 0)
        if code == 0:
            made.append(context)
            cuda.cuCtxPopCurrent_v2(None)
    return code, made
def heap(mib):
    return cuda.cuCtxSetLimit(2, size((mib + 8) << 20)), None
def module(mib):
    code = handle()
    return cuda.cuModuleLoadData(ref(code), b"mib=%d" % mib), code
take, drop, drop_owner = {{
    "plain": (simple(cuda.cuMemAlloc_v2), cuda.cuMemFree_v2, None),
    "managed": (simple(cuda.cuMemAllocManaged, 1), cuda.cuMemFree_v2, None),
    "pitch": (pitched, cuda.cuMemFree_v2, None),
    "async": (simple(cuda.cuMemAllocAsync, None), lambda at: cuda.cuMemFreeAsync(at, None), None),
    "pool": (from_pool, lambda a: cuda.cuMemFreeAsync(a[0], None) or cuda.cuMemPoolDestroy(a[1]),
             lambda a: cuda.cuMemPoolDestroy(a[1]) or cuda.cuMemFreeAsync(a[0], None)),
    "physical": (created, cuda.cuMemRelease, None),
    "mapped": (mapped, lambda a: cuda.cuMemUnmap(a[0], size(a[1] << 20)), None),
    "array": (flat, cuda.cuArrayDestroy, None),
    "mipmap": (shaped(cuda.cuMipmappedArrayCreate, 1), cuda.cuMipmappedArrayDestroy, None),
    "graph": (graphed, lambda a: cuda.cuMemFreeAsync(a[0], None) or end_graph(*a[1:]),
              lambda a: end_graph(*a[1:]) or cuda.cuMemFree_v2(a[0])),
    "context": (contexts, lambda made: max(cuda.cuCtxDestroy_v2(context) for context in reversed(made)), None),
    "heap": (heap, lambda _: cuda.cuCtxSetLimit(2, size(8 << 20)), None),
    "module": (module, cuda.cuModuleUnload, None),
}}[os.environ["KIND"]]
def in_thread(call, *arguments):
    codes = []
    def run():
        context = ctypes.c_void_p()
        cuda.cuDevicePrimaryCtxRetain(ref(context), 0), cuda.cuCtxSetCurrent(context)
        codes.append(call(*arguments))
        cuda.cuDevicePrimaryCtxRelease_v2(0)
    thread = threading.Thread(target=run)
    thread.start(), thread.join()
    return codes[0]
begin()
"""


def reported(box: Container, kind: str, script: str) -> list[str]:
    done = python(box, TOOLS + script, KIND=kind)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_function_that_takes_memory_is_of_a_kind_that_is_tested() -> None:
    counted = {name for name, (kind, _) in generate.read_classes("cuda").items() if kind == "count"}
    tested = {name for names, _ in KINDS.values() for name in names.split()}
    assert tested | SHARED | ENDS == counted | {"cuGraphLaunch", "cuGraphLaunch_ptsz"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_counted_is_what_is_charged_and_freeing_returns_all(kind: str, container: MakeContainer) -> None:
    part = 303 if kind == "context" else 64
    parts = 1 if kind == "heap" else 3
    script = f"""
first = [take({part}) for _ in range({parts})]
print([code for code, _ in first], held())
print([(drop(what), held()) for _, what in (first[1], first[2], first[0])] if {parts} == 3 else drop(None), held())
everything = take({1515 if kind == "context" else ROOM})
print(everything[0], held(), take({303 if kind == "context" else ROOM + 64})[0], held())
print(in_thread(drop, everything[1]) if {kind not in ("context", "heap")} else drop(everything[1]), held())
"""
    half = f"[(0, {2 * part}), (0, {part}), (0, 0)] 0" if parts == 3 else "0 0"
    whole = 1515 if kind == "context" else ROOM
    expected = [f"{[0] * parts} {parts * part}", half, f"0 {whole} 2 {whole}", "0 0"]
    assert reported(container(LIMIT), kind, script) == expected


@pytest.mark.parametrize("kind", [kind for kind, (_, ends) in KINDS.items() if "owner" in ends])
def test_all_returns_when_the_owner_goes_first(kind: str, container: MakeContainer) -> None:
    script = f"print((first := take(640))[0], held(), drop_owner(first[1]), held(), take({ROOM})[0])"
    assert reported(container(LIMIT), kind, script) == ["0 640 0 0 0"]


@pytest.mark.parametrize("kind", [kind for kind, (_, ends) in KINDS.items() if "context" in ends])
@pytest.mark.parametrize("how", ["Release", "Reset"])
def test_all_returns_with_the_context(how: str, kind: str, container: MakeContainer) -> None:
    script = f"""
print(take(640)[0], held(), cuda.cuDevicePrimaryCtx{how}_v2(0), charged())
print(begin(), held(), take({ROOM})[0])
"""
    assert reported(container(LIMIT), kind, script) == ["0 640 0 0", "(0, 0, 0) 0 0"]


@pytest.mark.parametrize("kind", KINDS)
def test_all_returns_when_the_process_is_killed(kind: str, container: MakeContainer) -> None:
    box = container(LIMIT)
    amount = 303 if kind == "context" else 640
    script = TOOLS + f"assert (take({amount})[0], held()) == (0, {amount})"
    with box.waiting(script, KIND=kind) as process:
        assert box.usage().devices[0].held == CONTEXT + amount * MIB == box.really_held()
        process.kill()
        process.wait()
    assert reported(box, "plain", f"print(held(), take({ROOM})[0])") == ["0 0"]
