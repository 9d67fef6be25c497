"""Who a process is in its own PID namespace, from what the kernel says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.ports.host import LinuxHost, ProcessIdentity, parse_identity

STATUS = "Name:\tpython3\nPid:\t90417\nNSpid:\t{}\n"
STAT = "90417 ({}) S 1 90417 90417 0 -1 4194560 4 0 0 0 1 2 0 0 20 0 8 0 5120 3084288 389 18446744073709551615\n"


@pytest.mark.parametrize(("pids", "own"), [("90417", 90417), ("90417\t7", 7), ("90417\t7\t1", 1)])
@pytest.mark.parametrize("name", ["python3", "a) b (c", "S 1 2 3", ""])
def test_a_process_is_known_by_its_innermost_pid_and_its_start(pids: str, own: int, name: str) -> None:
    assert parse_identity(STATUS.format(pids), STAT.format(name)) == ProcessIdentity(own, 5120)


@pytest.mark.parametrize(
    ("status", "stat"),
    [
        ("", STAT.format("p")),
        (STATUS.format("7"), ""),
        (STATUS.format(""), STAT.format("p")),
        (STATUS.format("x"), STAT.format("p")),
        ("Name:\tNSpid:\t7\n", STAT.format("p")),
        (STATUS.format("7"), "7 (p) S 1 2"),
        (STATUS.format("7"), STAT.format("p").replace(" 5120 ", " x ")),
    ],
)
def test_what_the_kernel_does_not_say_is_unknown(status: str, stat: str) -> None:
    assert parse_identity(status, stat) is None


BREAKS = ["\r", "\v", "\f", "\x1c", "\x85", "\u2028"]
"""At these, Python splits lines and the kernel does not."""


@pytest.mark.parametrize("character", BREAKS)
def test_the_name_of_a_process_forges_no_identity(character: str) -> None:
    """The kernel keeps 15 bytes of a name, which is enough for a line of its own."""
    name = f"{character}NSpid:\t7".encode()
    code = f"import ctypes; ctypes.CDLL(None).prctl(15, {name!r}); print('named', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"named\n"
        identity = LinuxHost().process_identity(process.pid)
        process.communicate(b"\n")
    assert identity is not None and identity.pid == process.pid


def test_a_name_that_is_no_text_hides_no_identity(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/status").write_bytes(b"Name:\t\xff\xfe\nPid:\t7\nNSpid:\t7\t3\n")
    (tmp_path / "7/stat").write_bytes(STAT.format("N").encode().replace(b"(N)", b"(\xff\xfe)"))
    assert LinuxHost(tmp_path).process_identity(7) == ProcessIdentity(3, 5120)
    (tmp_path / "7" / "comm").write_text("nvidia-cuda-mps\n")
    assert (LinuxHost(tmp_path).process_name(7), LinuxHost(tmp_path).process_name(8)) == ("nvidia-cuda-mps", "")


@pytest.mark.parametrize("character", BREAKS)
def test_the_name_of_a_file_forges_no_mapping(tmp_path: Path, character: str) -> None:
    wanted = tmp_path / "usage"
    wanted.touch()
    own = f"7f00-7f01 rw-s 00000000 00:2a {wanted.stat().st_ino} {wanted}"
    (tmp_path / "7").mkdir()
    maps = tmp_path / "7/maps"
    maps.write_bytes(f"7f00-7f01 rw-s 00000000 00:2a 1 /tmp/x{character}{own}\n".encode())
    assert not LinuxHost(tmp_path).has_mapped(7, wanted)
    maps.write_bytes(b"7e00-7e01 rw-s 00000000 00:2a 1 /tmp/\xff\n" + f"{own}\n".encode())
    assert LinuxHost(tmp_path).has_mapped(7, wanted), "another file's name is no text"


def test_a_process_that_is_gone_has_mapped_nothing(tmp_path: Path) -> None:
    wanted = tmp_path / "usage"
    wanted.touch()
    assert not LinuxHost(tmp_path).has_mapped(7, wanted)


def test_a_process_of_this_machine() -> None:
    host = LinuxHost()
    own = host.process_identity(os.getpid())
    assert own is not None and own.pid == os.getpid()
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert own.start == int(stat[19])
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert host.process_identity(ended.pid) is None
