"""The processes of a command are found by their descent, whatever they and others look like."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from lamina.errors import Outside
from lamina.ports.kept_tree import KeptTree, keeping
from lamina.ports.mps import ControlProgram, Home
from lamina.ports.mps.program import environment
from tests.signals import INHERITED, SIGNALS, inherited_by
from tests.waiting import wait_until

DAEMON = """
import os, sys, time
if os.fork():
    sys.exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for orphan in range(2):
    if os.fork() == 0:
        os.setsid()
        os.execve(sys.executable, ["sleep", "-c", "import time; time.sleep(600)"], {})
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(600)
"""
"""It leaves its starter as daemons do, and has two children that have no environment and another name."""
RESPAWNING = """
import os, sys
for one in range(20):
    os.fork() or os.execv("/bin/sleep", ["sleep", "600"])
while True:
    os.fork() or os.execv("/bin/sleep", ["sleep", "0.02"])
    os.wait()
"""


def started(record: Path, *command: str) -> int:
    return subprocess.run(keeping(record, command), stdin=subprocess.DEVNULL, check=False, timeout=60).returncode


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "keeper"
    with_keeper = tmp_path / "keeper"
    if with_keeper.exists() and len(with_keeper.read_text().split()) == 4:
        asyncio.run(KeptTree(with_keeper).end(60))


@pytest.fixture
def daemon(record: Path, tmp_path: Path) -> list[int]:
    """A daemon and its children; what started it has ended."""
    assert started(record, sys.executable, "-c", DAEMON, str(tmp_path / "pid")) == 0
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the daemon does not start")
    first = int((tmp_path / "pid").read_text())
    found = [first, *children(first)]
    assert len(found) == 3
    return found


def children(parent: int) -> list[int]:
    return [pid for pid in living() if fields(pid)[1] == str(parent)]


def fields(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X", "0"]


def living() -> list[int]:
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in pids if fields(pid)[0] not in "ZX"]


@contextmanager
def impostors(record: Path, variables: dict[str, str]) -> Iterator[list[int]]:
    """60 processes that look like those of the record in all that they can choose, and some that start all the time."""
    made = [
        subprocess.Popen(
            [*keeping(record, ["nvidia-cuda-mps-server"])[:3], "-c", RESPAWNING, *keeping(record, ["600"])[4:]],
            env={**os.environ, **variables},
            executable=sys.executable,
            process_group=0,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(3)
    ]
    try:
        wait_until(lambda: all(len(children(each.pid)) >= 20 for each in made), "the impostors do not start")
        yield [each.pid for each in made]
    finally:
        for each in made:
            os.killpg(each.pid, signal.SIGKILL)
            each.wait()


def test_a_command_is_kept_with_all_that_it_left(daemon: list[int], record: Path) -> None:
    keeper = KeptTree(record).keeper
    assert keeper is not None
    assert daemon[0] in children(keeper), "it has lost its parent and keeps a known one"
    os.kill(daemon[0], signal.SIGKILL)
    wait_until(lambda: set(daemon[1:]) <= set(children(keeper)), "its children have another parent")
    asyncio.run(KeptTree(record).end(60))
    assert not set(daemon) & set(living())
    assert KeptTree(record).keeper is None


def test_another_process_finds_and_ends_it(daemon: list[int], record: Path) -> None:
    script = (
        "import asyncio; from pathlib import Path; from lamina.ports.kept_tree import KeptTree; "
        f"asyncio.run(KeptTree(Path({str(record)!r})).end(60))"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert not set(daemon) & set(living())


def test_a_keeper_ends_with_the_last_of_its_processes(daemon: list[int], record: Path) -> None:
    for pid in daemon:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: KeptTree(record).keeper is None, "the keeper stays")


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)])
def test_the_exit_code_is_the_commands(record: Path, script: str, code: int) -> None:
    assert started(record, "sh", "-c", script) == code
    wait_until(lambda: KeptTree(record).keeper is None, "the keeper stays")


@pytest.mark.parametrize(("ignored", "blocked"), INHERITED)
def test_the_command_has_signals_as_without_a_keeper(
    record: Path, ignored: Sequence[signal.Signals], blocked: Sequence[signal.Signals]
) -> None:
    assert inherited_by(keeping(record, SIGNALS), ignored, blocked) == inherited_by(SIGNALS, ignored, blocked)


def test_a_command_that_cannot_run_says_so(record: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert started(record, "/none") == 127
    assert capfd.readouterr().err == "/none: No such file or directory\n"
    assert started(record.parent / "missing" / "keeper", "true") == 127


@pytest.mark.parametrize("place", range(4), ids=["boot", "namespace", "pid", "start"])
def test_a_process_with_the_same_pid_is_another_one(daemon: list[int], record: Path, place: int) -> None:
    """A record of before the last boot, of another PID namespace, or of a PID that was given again."""
    words, noted = record.read_text().split(), record.read_text()
    words[place] = str(os.getpid()) if place == 2 else "1"
    record.write_text(" ".join(words))
    assert KeptTree(record).keeper is None
    asyncio.run(KeptTree(record).end(0))
    record.write_text(noted)
    assert set(daemon) <= set(living())


def test_no_record_is_no_process_and_a_strange_one_is_an_error(tmp_path: Path) -> None:
    assert KeptTree(tmp_path / "none").keeper is None
    for content in (b"", b"\xff", b"1 2 3", b"a b -1 d", b"1 2 3 4 5"):
        (tmp_path / "keeper").write_bytes(content)
        with pytest.raises(Outside, match="cannot read"):
            _ = KeptTree(tmp_path / "keeper").keeper


async def test_a_process_with_the_variables_of_a_daemon_is_not_one(tmp_path: Path) -> None:
    """Hundreds of processes, also new ones all the time, neither keep a daemon from starting nor from ending, and none
    of them is ended."""
    home = Home("GPU-1", tmp_path / "mps")
    for folder in (home.pipe, home.log):
        folder.mkdir(parents=True)
    control = tmp_path / "nvidia-cuda-mps-control"
    control.write_text(f'#!{sys.executable}\nimport sys\nsys.argv = ["", "{tmp_path}/pid"]\n{DAEMON}')
    control.chmod(0o755)
    program, worn = ControlProgram(str(control)), {"LAMINA_MPS": str(home.folder)} | environment(home, {})
    with impostors(home.keeper, worn) as others:
        before = time.monotonic()
        for _ in range(3):
            await program.end(home)
            await program.start(home)
            with pytest.raises(Outside, match=r"does not start: one runs already, below process [0-9]+$"):
                await program.start(home)
        wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "it does not start")
        await program.end(home)
        assert KeptTree(home.keeper).keeper is None
        assert all(len(children(each)) >= 20 for each in others), "another process was ended"
        assert time.monotonic() - before < 60


async def test_what_does_not_end_is_named_in_few_words(daemon: list[int], record: Path) -> None:
    keeper = KeptTree(record).keeper
    assert keeper is not None
    os.kill(keeper, signal.SIGSTOP)
    try:
        with pytest.raises(Outside, match=f"^process {keeper}, or what it started, does not end$"):
            await KeptTree(record).end(0.1)
    finally:
        os.kill(keeper, signal.SIGCONT)
    await KeptTree(record).end(60)
    assert not set(daemon) & set(living())
