"""A process on a simulated machine. It evaluates each line of its input and prints the result; tests drive it."""

import ctypes
import os
import sys
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p

MIB = 1 << 20
cu = ctypes.CDLL("libcuda.so.1")


def init() -> int:
    return cu.cuInit(0)


def count() -> tuple[int, int]:
    number = c_int(-1)
    return cu.cuDeviceGetCount(byref(number)), number.value


def uuids() -> list[str]:
    out = []
    for ordinal in range(count()[1]):
        raw = (ctypes.c_ubyte * 16)()
        cu.cuDeviceGetUuid(raw, ordinal)
        text = bytes(raw).hex()
        out.append(f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")
    return out


def primary(ordinal: int = 0) -> int:
    context = c_void_p()
    code = cu.cuDevicePrimaryCtxRetain(byref(context), ordinal)
    return code or cu.cuCtxSetCurrent(context)


def start() -> int:
    return init() or primary()


def create_context() -> tuple[int, int]:
    context = c_void_p()
    return cu.cuCtxCreate_v2(byref(context), 0, 0), context.value or 0


def destroy_context(context: int) -> int:
    return cu.cuCtxDestroy_v2(c_void_p(context))


def used() -> int:
    """MiB in use on the current context's GPU."""
    free, total = c_size_t(), c_size_t()
    if cu.cuMemGetInfo_v2(byref(free), byref(total)):
        return -1
    return (total.value - free.value) // MIB


def alloc(mib: float, function: str = "cuMemAlloc_v2") -> tuple[int, int]:
    at, size = c_uint64(), c_size_t(int(mib * MIB))
    if function == "cuMemAllocManaged":
        return cu.cuMemAllocManaged(byref(at), size, 1), at.value
    if function == "cuMemAllocAsync":
        return cu.cuMemAllocAsync(byref(at), size, None), at.value
    return getattr(cu, function)(byref(at), size), at.value


def pitch(width: int, height: int) -> tuple[int, int, int]:
    at, row = c_uint64(), c_size_t()
    code = cu.cuMemAllocPitch_v2(byref(at), byref(row), c_size_t(width), c_size_t(height), 4)
    return code, at.value, row.value


def free(at: int) -> int:
    return cu.cuMemFree_v2(c_uint64(at))


def free_async(at: int) -> int:
    return cu.cuMemFreeAsync(c_uint64(at), None)


class Properties(ctypes.Structure):
    """CUmemAllocationProp and the start of CUmemPoolProps, which agree as far as this goes."""

    _fields_ = (("type", c_int), ("handles", c_int), ("where", c_int), ("id", c_int), ("security", c_void_p),
                ("size", c_size_t), ("rest", ctypes.c_char * 56))  # fmt: skip


class Handle(ctypes.Structure):
    """CUipcMemHandle."""

    _fields_ = (("bytes", ctypes.c_char * 64),)


def device_properties() -> Properties:
    return Properties(type=1, where=1, id=0)


def create(mib: int) -> tuple[int, int]:
    handle = c_uint64()
    return cu.cuMemCreate(byref(handle), c_size_t(mib * MIB), byref(device_properties()), c_uint64(0)), handle.value


def reserve(mib: int) -> int:
    at = c_uint64()
    cu.cuMemAddressReserve(byref(at), c_size_t(mib * MIB), c_size_t(0), c_uint64(0), c_uint64(0))
    return at.value


def map_at(at: int, mib: int, handle: int) -> int:
    return cu.cuMemMap(c_uint64(at), c_size_t(mib * MIB), c_size_t(0), c_uint64(handle), c_uint64(0))


def pool() -> int:
    made = c_void_p()
    cu.cuMemPoolCreate(byref(made), byref(device_properties()))
    return made.value or 0


def pool_alloc(made: int, mib: int) -> tuple[int, int]:
    at = c_uint64()
    return cu.cuMemAllocFromPoolAsync(byref(at), c_size_t(mib * MIB), c_void_p(made), None), at.value


def pool_threshold(made: int, size: int) -> int:
    return cu.cuMemPoolSetAttribute(c_void_p(made), 4, byref(c_uint64(size)))


class Array3D(ctypes.Structure):
    _fields_ = (("w", c_size_t), ("h", c_size_t), ("d", c_size_t), ("format", c_int), ("channels", ctypes.c_uint),
                ("flags", ctypes.c_uint))  # fmt: skip


def array(width: int, height: int, depth: int, levels: int = 0) -> tuple[int, int]:
    """An array of floats; mipmapped when it has levels."""
    made, shape = c_void_p(), Array3D(width, height, depth, 0x20, 1, 0)
    if levels:
        return cu.cuMipmappedArrayCreate(byref(made), byref(shape), levels), made.value or 0
    return cu.cuArray3DCreate_v2(byref(made), byref(shape)), made.value or 0


def write(at: int, data: bytes) -> int:
    return cu.cuMemcpyHtoD_v2(c_uint64(at), data, c_size_t(len(data)))


def fetch(at: int, size: int) -> tuple[int, bytes]:
    buffer = ctypes.create_string_buffer(size)
    return cu.cuMemcpyDtoH_v2(buffer, c_uint64(at), c_size_t(size)), buffer.raw


def function(name: bytes = b"spin") -> c_void_p:
    module, found = c_void_p(), c_void_p()
    cu.cuModuleLoadData(byref(module), b"simgpu")
    cu.cuModuleGetFunction(byref(found), module, name)
    return found


def module_of(image: bytes, name: bytes) -> int:
    """Whether a module of this image has a kernel: 0, or the driver's error."""
    module = c_void_p()
    return cu.cuModuleLoadData(byref(module), image) or cu.cuModuleGetFunction(byref(c_void_p()), module, name)


def library_of(image: bytes, name: bytes) -> int:
    library = c_void_p()
    code = cu.cuLibraryLoadData(byref(library), image, None, None, 0, None, None, 0)
    return code or cu.cuLibraryGetKernel(byref(c_void_p()), library, name)


def file_of(path: str, name: bytes) -> int:
    module = c_void_p()
    return cu.cuModuleLoad(byref(module), path.encode()) or cu.cuModuleGetFunction(byref(c_void_p()), module, name)


def attribute(at: int, number: int, size: int = 4) -> tuple[int, int]:
    """What the driver says of an address, in so many bytes."""
    value = c_uint64()
    code = cu.cuPointerGetAttribute(byref(value), number, c_uint64(at))
    return code, value.value & ((1 << 8 * size) - 1)


def pinned(size: int) -> int:
    at = c_void_p()
    return 0 if cu.cuMemHostAlloc(byref(at), c_size_t(size), 0) else at.value or 0


def limit(number: int) -> tuple[int, int]:
    value = c_size_t()
    return cu.cuCtxGetLimit(byref(value), number), value.value


def spin(ms: float, times: int = 1, stream: int | None = None) -> int:
    kernel, duration = function(), c_uint64(int(ms * 1e6))
    parameters = (c_void_p * 1)(ctypes.addressof(duration))
    code = 0
    for _ in range(times):
        code = code or cu.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, c_void_p(stream), parameters, None)
    return code


def sync() -> int:
    return cu.cuCtxSynchronize()


def stream() -> int:
    made = c_void_p()
    cu.cuStreamCreate(byref(made), 1)
    return made.value or 0


def event(on: int | None = None) -> int:
    made = c_void_p()
    cu.cuEventCreate(byref(made), 0)
    cu.cuEventRecord(made, c_void_p(on))
    return made.value or 0


def query(made: int) -> int:
    return cu.cuEventQuery(c_void_p(made))


def elapsed(first: int, second: int) -> tuple[int, float]:
    ms = c_float()
    return cu.cuEventElapsedTime(byref(ms), c_void_p(first), c_void_p(second)), ms.value


def captured(on: int, work: "list[float]") -> tuple[int, int]:
    """A graph of kernels of these durations, recorded on a stream."""
    graph, ready = c_void_p(), c_void_p()
    cu.cuStreamBeginCapture_v2(c_void_p(on), 0)
    for ms in work:
        spin(ms, 1, on)
    code = cu.cuStreamEndCapture(c_void_p(on), byref(graph))
    return code or cu.cuGraphInstantiateWithFlags(byref(ready), graph, c_uint64(0)), ready.value or 0


def capturing_allocation(on: int, mib: int) -> tuple[int, int]:
    """A graph that allocates, recorded on a stream; the graph itself is destroyed."""
    graph, ready, at = c_void_p(), c_void_p(), c_uint64()
    cu.cuStreamBeginCapture_v2(c_void_p(on), 0)
    cu.cuMemAllocAsync(byref(at), c_size_t(mib * MIB), c_void_p(on))
    cu.cuMemFreeAsync(at, c_void_p(on))
    cu.cuStreamEndCapture(c_void_p(on), byref(graph))
    code = cu.cuGraphInstantiateWithFlags(byref(ready), graph, c_uint64(0))
    return code or cu.cuGraphDestroy(graph), ready.value or 0


def launch_graph(ready: int, on: int) -> int:
    return cu.cuGraphLaunch(c_void_p(ready), c_void_p(on))


def in_child(text: str) -> str:
    """What an expression gives in a forked child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, repr(eval(text)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    answer = os.read(reader, 4096).decode()
    os.close(reader)
    os.close(writer)
    return answer


def main() -> None:
    if sys.argv[1:]:
        print(repr(sys.argv[1]), flush=True)
    for line in sys.stdin:
        print(repr(eval(line, globals())), flush=True)


if __name__ == "__main__":
    main()
