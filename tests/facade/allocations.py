"""What programs of tests in containers call to allocate memory in every way that becomes managed memory."""

TOOLS = """
begin()
at, row = ctypes.c_uint64(), ctypes.c_size_t()
def plain(mib):
    return cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(mib << 20)), at.value
def pitched(mib):
    size = ctypes.c_size_t(1), ctypes.c_size_t(mib << 11)
    return cuda.cuMemAllocPitch_v2(ctypes.byref(at), ctypes.byref(row), *size, 4), at.value
def ordered(mib):
    return cuda.cuMemAllocAsync(ctypes.byref(at), ctypes.c_size_t(mib << 20), None), at.value
def drop(at):
    return cuda.cuMemFree_v2(ctypes.c_uint64(at))
def drop_ordered(at):
    return cuda.cuMemFreeAsync(ctypes.c_uint64(at), None)
def ask(attribute, at):
    value = ctypes.c_uint64(7)
    return cuda.cuPointerGetAttribute(ctypes.byref(value), attribute, ctypes.c_uint64(at)), value.value & 0xffffffff
def ask_all(at):
    kind, managed, host = ctypes.c_uint32(7), ctypes.c_uint32(7), ctypes.c_uint64(7)
    places = (ctypes.c_void_p * 3)(*(ctypes.addressof(v) for v in (kind, managed, host)))
    code = cuda.cuPointerGetAttributes(3, (ctypes.c_int * 3)(2, 8, 4), places, ctypes.c_uint64(at))
    return code, kind.value, managed.value, host.value
"""
