"""Memory that processes share counts once in a container: with its owner, or with those who use it when the owner is
gone; and what comes from outside counts with its first user."""

import subprocess
from pathlib import Path

import pytest

from tests.building import compile_program
from tests.facade.conftest import CONTEXT, MIB, Container, MakeContainer
from tests.facade.new_driver import LOCATIONS, on_new_driver
from tests.facade.python_programs import python

TOOLS = """
begin()
class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]
at = ctypes.c_uint64()
def export(mib, path, inside=0):
    handle = Handle()
    code = cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(mib << 20))
    place = ctypes.c_uint64(at.value + (inside << 20))
    codes = code, cuda.cuIpcGetMemHandle(ctypes.byref(handle), place)
    open(path, "wb").write(bytes(handle))
    return codes
def use(path):
    handle = Handle.from_buffer_copy(open(path, "rb").read())
    return cuda.cuIpcOpenMemHandle_v2(ctypes.byref(at), handle, 1), at.value
def close(where):
    return cuda.cuIpcCloseMemHandle(ctypes.c_uint64(where))
"""

FILES = (
    LOCATIONS
    + """
import socket, threading
begin()
handle, where = ctypes.c_uint64(), ctypes.c_uint64()
def export(mib):
    file = ctypes.c_int()
    size, kind = ctypes.c_size_t(mib << 20), Properties(1, 1, 1, 0)
    codes = (cuda.cuMemCreate(ctypes.byref(handle), size, ctypes.byref(kind), 0),
             cuda.cuMemExportToShareableHandle(ctypes.byref(file), handle, 1, 0))
    assert codes == (0, 0), codes
    return file.value
def offer(path, mib, files=1):
    open_files = [export(mib)]
    for _ in range(files - 1):
        file = ctypes.c_int()
        assert cuda.cuMemExportToShareableHandle(ctypes.byref(file), handle, 1, 0) == 0
        open_files.append(file.value)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    def serve():
        while True:
            client = server.accept()[0]
            socket.send_fds(client, [b"x"], [open_files.pop(0) if len(open_files) > 1 else open_files[0]])
    threading.Thread(target=serve, daemon=True).start()
def get(path):
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    return socket.recv_fds(client, 1, 1)[1][0]
def use(path):
    file = get(path)
    code = cuda.cuMemImportFromShareableHandle(ctypes.byref(handle), ctypes.c_void_p(file), 1)
    os.close(file)
    return code
def map_all(mib):
    size, none = ctypes.c_size_t(mib << 20), ctypes.c_uint64(0)
    return (cuda.cuMemAddressReserve(ctypes.byref(where), size, none, none, none),
            cuda.cuMemMap(where, size, none, handle, none))
"""
)


def held(box: Container) -> tuple[int, int]:
    """MiB counted beyond contexts, of the living processes as found by one of them, and the part without an owner."""
    device, processes = box.usage().devices[0], box.usage().processes
    return (device.held - len(processes) * CONTEXT) // MIB, device.orphaned // MIB


def go_on(process: "subprocess.Popen[str]") -> None:
    """Lets a waiting program go on to where it waits again."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "there\n"


@pytest.mark.parametrize("inside", [0, 4])
def test_an_import_counts_with_its_owner(inside: int, container: MakeContainer, tmp_path: Path) -> None:
    """Wherever in its memory the exported pointer is: the driver exports all of it."""
    box, path = container(3000), tmp_path / "handle"
    with box.waiting(TOOLS + f"assert export(1000, {str(path)!r}, {inside}) == (0, 0)"):
        script = f"""
first, second = use({str(path)!r}), use({str(path)!r})
print(first[0], second[0], free(), take(1300), take(400))
print(close(first[1]), close(second[1]), close(second[1]), free())
"""
        done = python(box, TOOLS + script)
    assert done.stdout.splitlines() == ["0 0 (0, 1394) 0 2", "0 0 1 (0, 94)"], done.stderr


@pytest.mark.parametrize("end", ["free", "kill"])
@pytest.mark.parametrize("users", [1, 2])
def test_an_import_outlives_its_owner_and_counts_on(
    users: int, end: str, container: MakeContainer, tmp_path: Path
) -> None:
    box, path = container(4000), str(tmp_path / "handle")
    owning = f"assert export(1000, {path!r}) == (0, 0)"
    if end == "free":
        owning += "\nprint('there', flush=True)\ninput()\nassert cuda.cuMemFree_v2(at) == 0"
    using = f"assert use({path!r})[0] == 0"
    second_does = TOOLS + using if users == 2 else "begin()"
    with (
        box.waiting(TOOLS + owning) as owner,
        box.waiting(TOOLS + using) as first,
        box.waiting(second_does) as second,
    ):
        assert held(box) == (1000, 0)
        if end == "kill":
            owner.kill()
            owner.wait()
        else:
            go_on(owner)
        assert python(box, "begin(); print(free()[1])").stdout  # a process that starts finds the dead
        assert held(box) == (1000, 1000)
        assert box.really_held() == box.usage().devices[0].held
        first.kill()
        first.wait()
        python(box, "begin(); free()")
        assert held(box)[1] == (1000 if users == 2 else 0)
        assert box.really_held() == box.usage().devices[0].held
        second.kill()
        second.wait()
        done = python(box, "begin(); print(free()[1])")
    assert done.stdout == ("3697\n" if end == "kill" else "3394\n")


def test_memory_from_outside_counts_in_full_and_once(container: MakeContainer, tmp_path: Path) -> None:
    box, small, large = container(2000), str(tmp_path / "small"), str(tmp_path / "large")
    with (
        box.waiting(TOOLS + f"export(900, {small!r}); export(1800, {large!r})", outside=True),
        box.waiting(TOOLS + f"assert use({small!r})[0] == 0"),
    ):
        script = f"print(use({small!r})[0], free(), use({large!r})[0], free(), take(400), take(200))"
        done = python(box, TOOLS + script)
    assert done.stdout == "0 (0, 494) 2 (0, 494) 0 2\n", done.stderr
    assert "OOM" in done.stderr


def test_external_memory_counts_while_it_is_imported(tmp_path: Path) -> None:
    script = """
class Description(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handle", ctypes.c_uint64 * 2), ("size", ctypes.c_uint64),
                ("rest", ctypes.c_uint32 * 17)]
def take_external(mib):
    memory, description = ctypes.c_void_p(), Description(type=1, size=mib << 20)
    return cuda.cuImportExternalMemory(ctypes.byref(memory), ctypes.byref(description)), memory
cuda.cuInit(0)
first, second = take_external(1500), take_external(501)
print(first[0], second[0], take_external(500)[0], cuda.cuDestroyExternalMemory(first[1]), take_external(1500)[0])
"""
    assert on_new_driver(tmp_path, script) == ["0 2 0 0 0"]


def test_a_handle_from_elsewhere_counts_as_far_as_it_is_mapped(tmp_path: Path) -> None:
    script = """
handle = ctypes.c_uint64()
def map_at(place, mib, offset):
    return cuda.cuMemMap(*map(ctypes.c_uint64, (place << 30, mib << 20, offset << 20, handle.value, 0)))
cuda.cuInit(0)
print(cuda.cuMemImportFromShareableHandle(ctypes.byref(handle), None, 1), create(1, 0, 500))
print(map_at(1, 1000, 0), map_at(2, 1000, 0), create(1, 0, 600), map_at(3, 1000, 1000), map_at(3, 500, 1000))
print(cuda.cuMemRelease(handle), create(1, 0, 100))
print([cuda.cuMemUnmap(*map(ctypes.c_uint64, (n << 30, size << 20))) for n, size in ((1, 1000), (2, 1000), (3, 500))])
print(create(1, 0, 1600), create(1, 0, 1500))
"""
    assert on_new_driver(tmp_path, script) == ["0 0", "0 0 2 2 0", "0 2", "[0, 0, 0]", "2 0"]


def test_a_physical_handle_that_travels_as_a_file_counts_once(container: MakeContainer, tmp_path: Path) -> None:
    box, path = container(3000), str(tmp_path / "socket")
    with box.waiting(FILES + f"offer({path!r}, 1000, files=3)"):
        script = f"print(use({path!r}), map_all(1000), use({path!r}), map_all(1000), use({path!r}), free(), take(1400))"
        done = python(box, FILES + script)
        assert done.stdout == "0 (0, 0) 0 (0, 0) 0 (0, 1394) 2\n", done.stderr
        own = f"handles = ctypes.c_uint64(); print(export(1000) > 0, use({path!r}), free())"
        assert python(box, FILES + own).stdout == "True 0 (0, 394)\n"


@pytest.mark.parametrize("end", ["release", "kill"])
@pytest.mark.parametrize("users", [1, 2])
def test_an_imported_handle_outlives_its_owner(users: int, end: str, container: MakeContainer, tmp_path: Path) -> None:
    box, path = container(4000), str(tmp_path / "socket")
    owning = f"offer({path!r}, 1000)"
    if end == "release":
        owning += "\nprint('there', flush=True)\ninput()\nassert cuda.cuMemRelease(handle) == 0"
    using = f"assert use({path!r}) == 0 and map_all(1000) == (0, 0)"
    second_does = FILES + using if users == 2 else "begin()"
    with (
        box.waiting(FILES + owning) as owner,
        box.waiting(FILES + using) as first,
        box.waiting(second_does) as second,
    ):
        assert held(box) == (1000, 0)
        if end == "kill":
            owner.kill()
            owner.wait()
        else:
            go_on(owner)
        for alive, gone in ((users, None), (users - 1, first), (0, second)):
            if gone is not None:
                gone.kill()
                gone.wait()
            python(box, "begin(); free()")  # a process that starts finds the dead
            assert held(box)[1] == (1000 if alive else 0)
            assert box.really_held() == box.usage().devices[0].held


def test_a_handle_from_outside_counts_as_far_as_it_is_mapped_with_each_user(
    container: MakeContainer, tmp_path: Path
) -> None:
    box, path = container(2000), str(tmp_path / "socket")
    with (
        box.waiting(FILES + f"offer({path!r}, 800)", outside=True),
        box.waiting(FILES + f"use({path!r}), map_all(800)"),
    ):
        done = python(box, FILES + f"print(use({path!r}), free(), map_all(800), free())")
    assert done.stdout == "0 (0, 594) (0, 2) (0, 594)\n", done.stderr


def test_open_files_of_one_device_are_distinguished(tmp_path: Path) -> None:
    """As those of physical handles, which are all of one device file; and files are distinguished like them."""
    sources = ["native/tests/facade_marks.c", "native/facade/memory/file_marks.c"]
    program = compile_program(tmp_path, "marks", sources)
    plain = tmp_path / "file"
    plain.touch()
    for path in ("/dev/full", plain):
        done = subprocess.run([program, path], capture_output=True, text=True, check=False)
        assert done.stdout == "ok\n", done.stderr
