"""Memory that is freed in the order of a stream counts until the GPU has come to the free, and no longer."""

import pytest

from tests.facade.conftest import CONTEXT, MIB, MakeContainer
from tests.facade.python_programs import python
from tests.facade.running import WORK

LIMIT = 3000
FREES = f"""
import pathlib, threading
from lamina_lab import simgpu
begin()
stream, at, row = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t()
cuda.cuStreamCreate(ctypes.byref(stream), 1)
def held():
    "What is counted, where the driver holds no more than that; otherwise both, in MiB."
    counted = {LIMIT - CONTEXT // MIB} - free()[1]
    really = simgpu.read(pathlib.Path(os.environ["SIMGPU_MACHINE"])).gpus[0].used_mib - {CONTEXT // MIB}
    return counted if counted == really else (counted, really)
def plain(mib, pieces=1):
    return [keep_piece(mib << 20, pieces) for _ in range(pieces)]
def keep_piece(size, pieces):
    return at.value if cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size // pieces)) == 0 else 0
def pitched(mib):
    cuda.cuMemAllocPitch_v2(ctypes.byref(at), ctypes.byref(row), ctypes.c_size_t(1), ctypes.c_size_t(mib << 11), 4)
    return [at.value]
def small(mib):
    return plain(mib, mib * 2)
go = threading.Event()
wait = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: go.wait() and None)
def work(on=stream):
    "Keeps the stream busy until `go` is set."
    return cuda.cuLaunchHostFunc(on, wait, None)
def let_go(blocks, on=stream):
    return max(cuda.cuMemFreeAsync(ctypes.c_uint64(block), on) for block in blocks)
"""


def reported(container: MakeContainer, script: str) -> list[str]:
    done = python(container(LIMIT), FREES + script)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("kind", ["plain", "pitched", "small"])
def test_memory_counts_until_the_gpu_comes_to_its_free(kind: str, container: MakeContainer) -> None:
    script = f"""
blocks = {kind}(2000)
print(work(), let_go(blocks), held(), take(2000), held(), take(500), held())
print(go.set(), cuda.cuStreamSynchronize(stream), held(), take(2000), held())
"""
    assert reported(container, script) == ["0 0 2000 2 2000 0 2500", "None 0 500 0 2500"]


@pytest.mark.parametrize("wait", ["cuda.cuEventSynchronize(event)", "cuda.cuCtxSynchronize()"])
def test_every_wait_shows_what_is_freed(wait: str, container: MakeContainer) -> None:
    script = f"""
blocks, event = plain(2000), ctypes.c_void_p()
cuda.cuEventCreate(ctypes.byref(event), 0)
print(work(), let_go(blocks), cuda.cuEventRecord(event, stream), held(), go.set(), {wait}, held(), take(2500))
"""
    assert reported(container, script) == ["0 0 0 2000 None 0 0 0"]


def test_a_request_at_the_limit_finds_what_was_freed_meanwhile(container: MakeContainer) -> None:
    """Without any other call in between."""
    script = """
import time
blocks = plain(2000)
print(work(), let_go(blocks), take(2000), go.set())
until = time.monotonic() + 60
while take(2000) != 0 and time.monotonic() < until:
    time.sleep(0.05)
print(held())
"""
    assert reported(container, script) == ["0 0 2 None", "2000"]


def test_a_stream_that_is_idle_frees_at_once(container: MakeContainer) -> None:
    script = """
other = ctypes.c_void_p()
cuda.cuStreamCreate(ctypes.byref(other), 1)
print(work(), let_go(plain(2000), other), held(), let_go(plain(2000), other), held())
print(let_go(plain(100), stream), held(), go.set())
"""
    assert reported(container, script) == ["0 0 0 0 0", "0 100 None"]


def test_a_kernel_holds_the_frees_behind_it(container: MakeContainer) -> None:
    script = """
load()
ns = ctypes.c_uint64(10**9)
blocks, params = plain(2000), (ctypes.c_void_p * 1)(ctypes.addressof(ns))
print(cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, None), let_go(blocks), held(), end=" ")
print(cuda.cuStreamSynchronize(stream), held())
"""
    done = python(container(LIMIT), WORK + FREES + script)
    assert done.stdout == "0 0 2000 0 0\n", done.stderr


def test_the_end_of_a_context_ends_its_frees(container: MakeContainer) -> None:
    script = """
print(work(), let_go(plain(2000)), held(), go.set(), cuda.cuDevicePrimaryCtxReset_v2(0), begin(), held(), take(2600))
"""
    assert reported(container, script) == ["0 0 2000 None 0 (0, 0, 0) 0 0"]


def test_a_stream_of_another_context_frees_in_its_own_order(container: MakeContainer) -> None:
    script = """
blocks, other, place = plain(1000), ctypes.c_void_p(), ctypes.c_void_p()
print(work(), cuda.cuCtxCreate_v2(ctypes.byref(other), 0, 0), let_go(blocks), end=" ")
print(take(1500), go.set(), cuda.cuStreamSynchronize(stream), take(1500))
"""
    assert reported(container, script) == ["0 0 0 2 None 0 0"]


def test_a_block_is_freed_once(container: MakeContainer) -> None:
    script = """
blocks = plain(1000)
print(work(), let_go(blocks), let_go(blocks), cuda.cuMemFree_v2(ctypes.c_uint64(blocks[0])), held(), end=" ")
print(go.set(), cuda.cuCtxSynchronize(), held())
"""
    assert reported(container, script) == ["0 0 1 1 1000 None 0 0"]


def test_a_pool_uses_its_memory_again_at_once(container: MakeContainer) -> None:
    """The stream's order makes that safe, so it is refused no more than without limits."""
    script = """
def ordered(mib):
    return cuda.cuMemAllocAsync(ctypes.byref(at), ctypes.c_size_t(mib << 20), stream), [at.value]
code, blocks = ordered(2000)
print(code, work(), let_go(blocks), held(), ordered(2000)[0], held(), take(1000), go.set())
"""
    assert reported(container, script) == ["0 0 0 2016 0 2016 2 None"]
