"""The supervisor of one container or one exec: runs a program, writes its log, and ends all its processes.

It is run by path with an isolated interpreter, so it imports the standard library only. Standard input carries one line
of JSON that says what to run, then commands (`stop SECONDS`); its end means that the kubelet is gone. Standard output
carries events, one JSON object per line: started, failed, exited.

Every process that the program creates stays below the shim, which is the subreaper. When the program ends, the rest is
killed, as at the end of a container's first process. When the kubelet ends, the shim ends the program the same way
with a short grace period.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import sys
import termios
import time
from pathlib import Path
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ORPHAN_GRACE_S = 2.0
MAX_LINE = 16 * 1024  # as containerd splits lines
ROTATE_BYTES = 16 * 1024 * 1024  # one older file is kept, so that a container cannot fill the disk with its log
KILL_PASSES = 200  # a tree that forks faster than it can be killed is left to the kubelet

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    _libc.prctl(option, value, 0, 0, 0)


class Log:
    """A log in kubelet's format: `TIME STREAM F|P TEXT`. P marks a part of a longer line."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._fd).st_size
        self._rest: dict[str, bytes] = {}

    def feed(self, stream: str, data: bytes) -> None:
        lines = (self._rest.pop(stream, b"") + data).split(b"\n")
        rest = lines.pop()
        entries = [self._entry(stream, b"F", line) for line in lines]
        while len(rest) >= MAX_LINE:
            entries.append(self._entry(stream, b"P", rest[:MAX_LINE]))
            rest = rest[MAX_LINE:]
        if rest:
            self._rest[stream] = rest
        self._write(b"".join(entries))

    def close(self) -> None:
        for stream, rest in self._rest.items():
            self._write(self._entry(stream, b"P", rest))
        self._rest.clear()

    def _entry(self, stream: str, tag: bytes, text: bytes) -> bytes:
        nanoseconds = time.time_ns()
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(nanoseconds // 1_000_000_000))
        return f"{seconds}.{nanoseconds % 1_000_000_000:09d}Z {stream} ".encode() + tag + b" " + text + b"\n"

    def _write(self, data: bytes) -> None:
        if not data:
            return
        if self._size > ROTATE_BYTES:
            self._path.replace(f"{self._path}.1")
            fresh = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.close(self._fd)
            self._fd, self._size = fresh, 0
        with contextlib.suppress(OSError):  # a full disk loses log lines, not the container
            os.write(self._fd, data)
            self._size += len(data)


def children_of(parent: int) -> list[int]:
    """Process ids of all descendants of `parent`, from one pass over /proc."""
    below: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            below.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    front = [parent]
    while front:
        front = [child for pid in front for child in below.get(pid, ())]
        found += front
    return found


class ProgramStreams:
    """The program's three descriptors, and the ends of them that the shim reads."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.sources: dict[int, str] = {}
        self.tty = bool(config.get("tty"))
        self._held: list[int] = []
        if "fds" in config:
            self.child = [int(fd) for fd in config["fds"]]
            for fd in self.child:
                os.set_inheritable(fd, False)
            return
        if self.tty:
            master, slave = os.openpty()
            self.child = [slave, slave, slave]
            self.sources = {master: "stdout"}
            return
        self.child = [self._stdin(bool(config.get("stdin")))]
        for name in ("stdout", "stderr"):
            reader, writer = os.pipe()
            self.child.append(writer)
            self.sources[reader] = name

    def _stdin(self, held_open: bool) -> int:
        if not held_open:
            return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        reader, writer = os.pipe()
        self._held.append(writer)
        return reader

    def forget_child_side(self) -> None:
        for fd in set(self.child):
            os.close(fd)

    def enter(self) -> None:
        """In the child: make the three descriptors the standard ones, and a terminal the controlling one."""
        copies = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in self.child]
        for number, fd in enumerate(copies):
            os.dup2(fd, number)
        if self.tty:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def find_program(name: str, env: dict[str, str]) -> str:
    """The path of a program without a slash: the first in PATH that this user may run.

    As in runc, a directory in PATH that cannot be searched counts as one without the program. `os.execvpe` would fail
    with its error instead. Raises FileNotFoundError.
    """
    if "/" in name:
        return name
    candidates = (os.path.join(folder, name) for folder in os.get_exec_path(env))  # noqa: PTH118 - "" is the cwd
    for path in candidates:
        if os.access(path, os.X_OK) and not Path(path).is_dir():
            return path
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)


def why_not_run(argv: list[str], error: OSError) -> str:
    """runc's message for a program that cannot be run."""
    program = argv[0]
    if error.errno == errno.ENOENT and "/" not in program:
        return f'exec: "{program}": executable file not found in $PATH'
    if error.errno == errno.ENOENT:
        return f'exec: "{program}": stat {program}: no such file or directory'
    return f'exec: "{program}": {os.strerror(error.errno or 0).lower()}'


class Supervisor:
    """Runs one program and stays until none of its processes is left."""

    def __init__(self, config: dict[str, Any], commands: bytes) -> None:
        self.config = config
        self.streams = ProgramStreams(config)
        self.log = Log(config["log"]) if "log" in config else None
        self.main = 0
        self.status: int | None = None
        self.kill_at: float | None = None
        self.commands = commands
        self.wake, wake_writer = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake_writer, False)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)

    def run(self) -> None:
        failure = self.launch()
        if failure:
            emit({"event": "failed", "message": failure})
            return
        self.streams.forget_child_side()
        emit({"event": "started", "pid": self.main})
        self.obey()
        self.supervise()
        self.end_descendants()
        self.drain()
        assert self.status is not None
        code = os.waitstatus_to_exitcode(self.status)
        emit({"event": "exited", "code": code if code >= 0 else 128 - code, "signal": max(-code, 0)})

    def launch(self) -> str:
        """Fork and run the program. Returns the error, or ""."""
        reader, writer = os.pipe()
        self.main = os.fork()
        if self.main == 0:
            self.become_program(writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as report:
            failure = report.read().decode()
        if failure:
            os.waitpid(self.main, 0)
        return failure

    def become_program(self, report: int) -> NoReturn:
        try:
            os.setsid()
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            self.streams.enter()
            os.chdir(self.config["cwd"])
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            argv, env = self.config["argv"], self.config["env"]
            os.execve(find_program(argv[0], env), argv, env)
        except OSError as error:
            os.write(report, why_not_run(self.config["argv"], error).encode())
        except ValueError as error:
            os.write(report, str(error).encode())
        finally:
            os._exit(127)

    def supervise(self) -> None:
        """Until the program ends: log its output, obey commands, notice the end of the kubelet."""
        poll = select.poll()
        for fd in (0, self.wake, *self.streams.sources):
            poll.register(fd, select.POLLIN)
        while self.status is None:
            timeout = None if self.kill_at is None else max(0.0, self.kill_at - time.monotonic()) * 1000
            for fd, _ in poll.poll(timeout):
                if fd == 0:
                    if not self.read_commands():
                        poll.unregister(0)
                elif fd == self.wake:
                    self.read_signals()
                elif not self.pump(fd):
                    poll.unregister(fd)
            self.reap()
            if self.kill_at is not None and time.monotonic() >= self.kill_at:
                self.kill_tree()
                self.kill_at = time.monotonic() + 0.05

    def read_commands(self) -> bool:
        data = os.read(0, 65536)
        if not data:
            self.stop(ORPHAN_GRACE_S)
            return False
        self.commands += data
        self.obey()
        return True

    def obey(self) -> None:
        *lines, self.commands = self.commands.split(b"\n")
        for line in lines:
            word, _, value = line.partition(b" ")
            if word == b"stop":
                self.stop(float(value))

    def read_signals(self) -> None:
        with contextlib.suppress(BlockingIOError):
            # SIGTERM comes from the kernel when the kubelet died, or when the whole lab is stopped.
            if signal.SIGTERM in os.read(self.wake, 4096):
                self.stop(ORPHAN_GRACE_S)

    def stop(self, grace_s: float) -> None:
        """Ask the program to end within `grace_s` seconds. A second call can only shorten the time."""
        at = time.monotonic() + grace_s
        first = self.kill_at is None
        self.kill_at = at if self.kill_at is None else min(at, self.kill_at)
        if first and grace_s > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.main, signal.SIGTERM)
                os.kill(self.main, signal.SIGCONT)

    def pump(self, fd: int) -> bool:
        try:
            data = os.read(fd, 65536)
        except OSError:  # the last process with the terminal's other side has ended
            data = b""
        if data and self.log:
            self.log.feed(self.streams.sources[fd], data)
        return bool(data)

    def reap(self) -> bool:
        """Reap ended processes. Returns whether any process is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.main:
                self.status = status

    def kill_tree(self) -> None:
        for pid in children_of(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def end_descendants(self) -> None:
        for _ in range(KILL_PASSES):
            if not self.reap():
                return
            self.kill_tree()
            time.sleep(0.005)

    def drain(self) -> None:
        for fd in self.streams.sources:
            os.set_blocking(fd, False)
            while self.pump(fd):
                pass
        if self.log:
            self.log.close()


def emit(event: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the kubelet may be gone
        os.write(1, json.dumps(event).encode() + b"\n")


def read_config() -> tuple[dict[str, Any], bytes]:
    """What to run, and the commands that came with it."""
    data = b""
    while b"\n" not in data:
        more = os.read(0, 65536)
        if not more:
            sys.exit(0)
        data += more
    line, _, rest = data.partition(b"\n")
    return json.loads(line), rest


def main() -> None:
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    Supervisor(*read_config()).run()


if __name__ == "__main__":
    main()
