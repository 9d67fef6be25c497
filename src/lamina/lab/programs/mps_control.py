"""Stands for nvidia-cuda-mps-control: the control daemon of MPS on a simulated machine, and the program that asks it.

    nvidia-cuda-mps-control -d      start a daemon          nvidia-cuda-mps-control -f    be one in the foreground
    echo COMMAND | nvidia-cuda-mps-control                  ask the daemon of CUDA_MPS_PIPE_DIRECTORY

The daemon makes a server when the first client comes: a process with a context on each GPU, as CUDA_VISIBLE_DEVICES
names them. Clients (native/simgpu/cuda/mps.c) keep a connection to the daemon. When the server fails they are told,
and nobody new is let in until all of them have gone. It imports nothing but the standard library.
"""

import contextlib
import ctypes
import os
import re
import selectors
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PIPE = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
LOG = Path(os.environ.get("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps"))
MOST_CLIENTS = 48
NOT_READY, TOO_MANY, CONNECTION_FAILED = 807, 808, 805
_UNITS = {"": 1 / (1 << 20), "K": 1 / 1024, "M": 1.0, "G": 1024.0}
_AMOUNT = re.compile(r"([0-9]+)([KMG]?)B?")


class Client(NamedTuple):
    """`failed`: the server that it was a client of has gone."""

    pid: int
    failed: bool = False


class Server(NamedTuple):
    """A process with contexts. It ends when `life` is closed, and `gone` can be read when it has ended."""

    pid: int
    life: int
    gone: int
    gpus: tuple[str, ...]


@contextlib.contextmanager
def address() -> Iterator[str]:
    """That of the daemon's socket, short however long the path of the pipe directory is. Raises OSError."""
    folder = os.open(PIPE, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/control"
    finally:
        os.close(folder)


def connected() -> socket.socket | None:
    """A connection to the daemon, or None where there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with address() as found:
            connection.connect(found)
    except OSError:
        connection.close()
        return None
    return connection


class Daemon:
    """One control daemon. `run` ends with `quit`."""

    def __init__(self) -> None:
        self.percent = 100.0
        self.limits: dict[str, str] = {}
        self.server: Server | None = None
        self.clients: dict[socket.socket, Client] = {}
        self.quitting = False
        self.watched = selectors.DefaultSelector()
        self.log = (LOG / "control.log").open("a")
        (PIPE / "control").unlink(missing_ok=True)
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with address() as free:
            self.door.bind(free)
        (PIPE / "control").chmod(0o777)
        self.door.listen(256)
        (PIPE / "nvidia-cuda-mps-control.pid").write_text(f"{os.getpid()}\n")
        self.watched.register(self.door, selectors.EVENT_READ)
        self.note(f"Starting control daemon using socket {PIPE}/control")
        self.note(f"To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY={PIPE}")

    def note(self, text: str) -> None:
        now = time.time()
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
        self.log.write(f"[{stamp}.{int(now % 1 * 1000):03} Control {os.getpid():5}] {text}\n")
        self.log.flush()

    def run(self) -> None:
        while not (self.quitting and not self.clients):
            for key, _ in self.watched.select():
                if key.fileobj is self.door:
                    self.accept()
                elif isinstance(key.fileobj, socket.socket):
                    self.leave(key.fileobj)
                else:
                    self.server_ended()
        self.end_server()
        for name in ("control", "nvidia-cuda-mps-control.pid"):
            (PIPE / name).unlink(missing_ok=True)
        self.note("Exit")

    def accept(self) -> None:
        connection, _ = self.door.accept()
        connection.settimeout(5)
        try:
            text = connection.makefile().readline().strip()
            if text.startswith("CLIENT "):
                self.admit(connection, *map(int, text.split()[1:]))
                return
            self.note("NEW UI")
            self.note(f"Cmd:{text}")
            connection.sendall(self.obey(*text.split()).encode())
        except (OSError, ValueError, TypeError, IndexError) as error:
            self.note(f"a caller was not understood: {error}")
        connection.close()

    def admit(self, connection: socket.socket, pid: int, percent: int) -> None:
        """Let a client in, or tell it by an error of CUDA why not."""
        self.note(f"NEW CLIENT {pid} from user {os.getuid()}")
        refused = 0
        if any(client.failed for client in self.clients.values()):
            refused = NOT_READY
        elif self.quitting or len(self.clients) >= MOST_CLIENTS:
            refused = CONNECTION_FAILED if self.quitting else TOO_MANY
        elif not self.start_server():
            refused = CONNECTION_FAILED
        if refused or self.server is None:
            connection.sendall(f"ERROR {refused}\n".encode())
            connection.close()
            return
        limits = (f"{uuid}={mib(self.limits.get(str(index), '0'))}" for index, uuid in enumerate(self.server.gpus))
        connection.sendall(f"OK {max(1, min(percent, int(self.percent)))} {' '.join(limits)}\n".encode())
        self.clients[connection] = Client(pid)
        self.watched.register(connection, selectors.EVENT_READ)

    def leave(self, connection: socket.socket) -> None:
        """A client has ended; clients say nothing."""
        self.note(f"Client {self.clients[connection].pid} disconnected")
        self.watched.unregister(connection)
        del self.clients[connection]
        connection.close()

    def obey(self, name: str = "", *words: str) -> str:
        """What a command prints."""
        servers = f"{self.server.pid}\n" if self.server else ""
        if name == "set_default_active_thread_percentage":
            self.percent = float(words[0])
            return f"{self.percent}\n"
        if name == "set_default_device_pinned_mem_limit":
            self.limits[words[0]] = words[1]
            return ""
        if name == "start_server":
            return "" if self.start_server() else "Failed to start the server\n"
        if name == "quit":
            self.quitting = True
            if words[:1] == ("-t",):
                self.server_ended()
            return ""
        answers = {
            "get_default_active_thread_percentage": f"{self.percent}\n",
            "get_default_device_pinned_mem_limit": f"{self.limits.get(words[0] if words else '0', '0G')}\n",
            "get_server_list": servers,
            "get_server_status": "ACTIVE\n" if servers else "Server not found\n",
            "get_client_list": "".join(f"{each.pid}\n" for each in self.clients.values()),
        }
        return answers.get(name, f"Unknown command: {name}\n")

    def start_server(self) -> bool:
        """Have a server, unless there is one. Whether there is."""
        if self.server is not None:
            return True
        life, ours = os.pipe()
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            kept = {life, tell}
            for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
                if number > 2 and number not in kept:  # such as connections, whose other ends wait for their end
                    with contextlib.suppress(OSError):
                        os.close(number)
            serve(life, tell)
        os.close(life)
        os.close(tell)
        gpus = tuple(os.read(told, 4096).decode().split())
        if not gpus:
            self.note("Failed to start the server")
            os.waitpid(pid, 0)
            os.close(ours)
            os.close(told)
            return False
        self.note(f"Starting new server {pid} for user {os.getuid()}")
        self.server = Server(pid, ours, told, gpus)
        self.watched.register(told, selectors.EVENT_READ)
        return True

    def server_ended(self) -> None:
        """The server has failed: its clients are told, and stay listed until they have gone."""
        if self.server is not None:
            self.note(f"Server {self.server.pid} exited")
        self.end_server()
        for connection, client in list(self.clients.items()):
            self.clients[connection] = client._replace(failed=True)
            try:
                connection.sendall(b"SERVER GONE\n")
            except OSError:
                continue  # its end will be seen too

    def end_server(self) -> None:
        if self.server is not None:
            self.watched.unregister(self.server.gone)
            os.close(self.server.life)
            os.close(self.server.gone)
            os.waitpid(self.server.pid, 0)
            self.server = None


def serve(life: int, tell: int) -> None:
    """Be the server: hold a context on every GPU, name them by UUID, and live until `life` is closed."""
    os.environ["CUDA_MPS_PIPE_DIRECTORY"] = "/nowhere"
    cuda = ctypes.CDLL("libcuda.so.1")
    count, context = ctypes.c_int(), ctypes.c_void_p()
    uuids = []
    if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0:
        for ordinal in range(count.value):
            raw = (ctypes.c_ubyte * 16)()
            cuda.cuDeviceGetUuid(raw, ordinal)
            if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal) != 0:
                os._exit(1)
            text = bytes(raw).hex()
            uuids.append(f"GPU-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")
    os.write(tell, " ".join(uuids).encode())
    os.read(life, 1)
    os._exit(0)


def mib(text: str) -> int:
    """`4096M`, `4G` in MiB; 0 for what is none."""
    found = _AMOUNT.fullmatch(text)
    return int(int(found[1]) * _UNITS[found[2]]) if found else 0


def start(*, foreground: bool) -> int:
    """Start a daemon; the caller returns once that listens."""
    if connected() is not None:
        print("An instance of this daemon is already running", file=sys.stderr)
        return 1
    PIPE.mkdir(parents=True, exist_ok=True)
    LOG.mkdir(parents=True, exist_ok=True)
    if foreground:
        Daemon().run()
        return 0
    told, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            null = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(null, standard)
            daemon = Daemon()
            os.write(tell, b"y")
            os.close(tell)
            os.close(told)
            daemon.run()
        os._exit(0)
    os.close(tell)
    os.wait()
    return 0 if os.read(told, 1) else 1


def ask() -> int:
    """Pass on each line of the input, and print what the daemon says."""
    for line in sys.stdin:
        connection = connected()
        if connection is None:
            print("Cannot find MPS control daemon process")
            return 1
        if line.strip():
            connection.sendall(line.strip().encode() + b"\n")
            sys.stdout.write(connection.makefile().read())
        connection.close()
    return 0


if __name__ == "__main__":
    sys.exit(start(foreground="-f" in sys.argv) if {"-d", "-f"} & set(sys.argv) else ask())
