"""Stands for nvidia-cuda-mps-control: the MPS control daemon of a simulated machine, and its command-line client.

    nvidia-cuda-mps-control -d      start a daemon          nvidia-cuda-mps-control -f    run one in the foreground
        -multiuser-server           with one of these: serve clients of all users at the same time; for root only
    echo COMMAND | nvidia-cuda-mps-control                  send a command to the daemon of CUDA_MPS_PIPE_DIRECTORY

The daemon starts a server when the first client connects: a process with a context on each GPU in
CUDA_VISIBLE_DEVICES. Clients (native/simgpu/cuda/mps.c) keep a connection to the daemon. When the server fails, they
are notified, and no new client is admitted until all of them have ended. A server is for one user: a client of another
user waits until those before it have ended and gets a new server, and so does every client after it.

It imports only the standard library.
"""

import contextlib
import ctypes
import os
import re
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PIPE = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
LOG = Path(os.environ.get("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps"))
MULTI_USER = "-multiuser-server"
MAX_CLIENTS = 48
NOT_READY, TOO_MANY, CONNECTION_FAILED = 807, 808, 805
_UNITS = {"": 1 / (1 << 20), "K": 1 / 1024, "M": 1.0, "G": 1024.0}
_AMOUNT = re.compile(r"([0-9]+)([KMG]?)B?")


class Client(NamedTuple):
    """`percent` is what it allows itself at most. `failed`: its server has failed."""

    pid: int
    user: int
    percent: int
    failed: bool = False


class MpsServer(NamedTuple):
    """A process with contexts. It ends when `life` is closed; `gone` is readable when it has ended."""

    pid: int
    user: int
    life: int
    gone: int
    gpus: tuple[str, ...]


@contextlib.contextmanager
def address() -> Iterator[str]:
    """The address of the daemon's socket, short even if the pipe directory's path is long. Raises OSError."""
    folder = os.open(PIPE, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/control"
    finally:
        os.close(folder)


def connected() -> socket.socket | None:
    """A connection to the daemon, or None if it does not run."""
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

    def __init__(self, *, multi_user: bool) -> None:
        self.multi_user = multi_user
        self.percent = 100.0
        self.limits: dict[str, str] = {}
        self.server: MpsServer | None = None
        self.clients: dict[socket.socket, Client] = {}
        self.waiting: dict[socket.socket, Client] = {}
        self.quitting = False
        self.watched = selectors.DefaultSelector()
        self.log = (LOG / "control.log").open("a")
        (PIPE / "control").unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with address() as free:
            self.listener.bind(free)
        (PIPE / "control").chmod(0o777)
        self.listener.listen(256)
        (PIPE / "nvidia-cuda-mps-control.pid").write_text(f"{os.getpid()}\n")
        self.watched.register(self.listener, selectors.EVENT_READ)
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
                if key.fileobj is self.listener:
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
        connection, _ = self.listener.accept()
        connection.settimeout(5)
        try:
            text = connection.makefile().readline().strip()
            if text.startswith("CLIENT "):
                pid, percent = map(int, text.split()[1:])
                self.receive(connection, Client(pid, user_of(connection), percent))
                return
            self.note("NEW UI")
            self.note(f"Cmd:{text}")
            connection.sendall(self.obey(*text.split()).encode())
        except (OSError, ValueError, TypeError, IndexError) as error:
            self.note(f"cannot parse the message of a client: {error}")
        connection.close()

    def receive(self, connection: socket.socket, client: Client) -> None:
        """Admit a client, or have it wait for those of another user."""
        self.note(f"NEW CLIENT {client.pid} from user {client.user}")
        if self.is_served(client) and not self.waiting:
            self.admit(connection, client)
            return
        self.note(f"Client {client.pid} waits until the server of another user has ended")
        self.waiting[connection] = client
        self.watched.register(connection, selectors.EVENT_READ)

    def is_served(self, client: Client) -> bool:
        return self.multi_user or all(other.failed or other.user == client.user for other in self.clients.values())

    def admit_waiting(self) -> None:
        """Admit those who wait, in the order in which they came, up to the first of another user."""
        for connection, client in list(self.waiting.items()):
            if not self.is_served(client):
                return
            self.watched.unregister(connection)
            del self.waiting[connection]
            try:
                self.admit(connection, client)
            except OSError:
                connection.close()  # it has ended meanwhile

    def admit(self, connection: socket.socket, client: Client) -> None:
        """Admit a client, or send it the CUDA error that says why not."""
        refused = 0
        if any(client.failed for client in self.clients.values()):
            refused = NOT_READY
        elif self.quitting or len(self.clients) >= MAX_CLIENTS:
            refused = CONNECTION_FAILED if self.quitting else TOO_MANY
        elif not self.start_server(client.user):
            refused = CONNECTION_FAILED
        if refused or self.server is None:
            connection.sendall(f"ERROR {refused}\n".encode())
            connection.close()
            return
        limits = (f"{uuid}={mib(self.limits.get(str(index), '0'))}" for index, uuid in enumerate(self.server.gpus))
        connection.sendall(f"OK {max(1, min(client.percent, int(self.percent)))} {' '.join(limits)}\n".encode())
        self.clients[connection] = client
        self.watched.register(connection, selectors.EVENT_READ)

    def leave(self, connection: socket.socket) -> None:
        """A client has ended. Clients do not announce it."""
        client = self.clients.pop(connection, None) or self.waiting.pop(connection, None)
        if client is None:
            return  # it was refused meanwhile
        self.note(f"Client {client.pid} disconnected")
        self.watched.unregister(connection)
        connection.close()
        self.admit_waiting()

    def obey(self, name: str = "", *words: str) -> str:
        """The output of a command."""
        servers = f"{self.server.pid}\n" if self.server else ""
        if name == "set_default_active_thread_percentage":
            self.percent = float(words[0])
            return f"{self.percent}\n"
        if name == "set_default_device_pinned_mem_limit":
            self.limits[words[0]] = words[1]
            return ""
        if name == "start_server":
            return "" if self.start_server(int(words[1])) else "Failed to start the server\n"
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
            "get_client_list": "".join(f"{client.pid}\n" for client in self.clients.values()),
        }
        return answers.get(name, f"Unknown command: {name}\n")

    def start_server(self, user: int) -> bool:
        """Start a server for a user unless there is one. Returns whether there is one."""
        if self.server is not None and (self.multi_user or self.server.user == user):
            return True
        self.end_server()
        life, ours = os.pipe()
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            kept = {life, writer}
            for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
                if number > 2 and number not in kept:  # inherited connections would keep clients waiting
                    with contextlib.suppress(OSError):
                        os.close(number)
            serve(life, writer)
        os.close(life)
        os.close(writer)
        gpus = tuple(os.read(reader, 4096).decode().split())
        if not gpus:
            self.note("Failed to start the server")
            os.waitpid(pid, 0)
            os.close(ours)
            os.close(reader)
            return False
        self.note(f"Starting new server {pid} for user {user}")
        self.server = MpsServer(pid, user, ours, reader, gpus)
        self.watched.register(reader, selectors.EVENT_READ)
        return True

    def server_ended(self) -> None:
        """The server has failed: notify its clients, which stay listed until they have ended."""
        if self.server is not None:
            self.note(f"Server {self.server.pid} exited")
        self.end_server()
        for connection, client in list(self.clients.items()):
            self.clients[connection] = client._replace(failed=True)
            try:
                connection.sendall(b"SERVER GONE\n")
            except OSError:
                continue  # its end is reported separately

    def end_server(self) -> None:
        if self.server is not None:
            self.watched.unregister(self.server.gone)
            os.close(self.server.life)
            os.close(self.server.gone)
            os.waitpid(self.server.pid, 0)
            self.server = None


def serve(life: int, writer: int) -> None:
    """Be the server: hold a context on every GPU, report their UUIDs, and live until `life` is closed."""
    take_name("nvidia-cuda-mps-server")
    os.environ["CUDA_MPS_PIPE_DIRECTORY"] = "/nowhere"
    cuda = ctypes.CDLL("libcuda.so.1")
    count, context = ctypes.c_int(), ctypes.c_void_p()
    uuids = []
    kind = "MIG" if os.environ.get("CUDA_VISIBLE_DEVICES", "").startswith("MIG-") else "GPU"
    if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0:
        for ordinal in range(count.value):
            raw = (ctypes.c_ubyte * 16)()
            cuda.cuDeviceGetUuid(raw, ordinal)
            if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal) != 0:
                os._exit(1)
            text = bytes(raw).hex()
            uuids.append(f"{kind}-{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")
    os.write(writer, " ".join(uuids).encode())
    os.read(life, 1)
    os._exit(0)


def take_name(name: str) -> None:
    """Have the process listed under a name, as nvidia-smi shows it: in place of the words of its command."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    text = name.encode()[: end - start - 1]
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


def user_of(connection: socket.socket) -> int:
    """The user of the process at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[1])


def mib(text: str) -> int:
    """`4096M` or `4G` in MiB; 0 if it is not a size."""
    found = _AMOUNT.fullmatch(text)
    return int(int(found[1]) * _UNITS[found[2]]) if found else 0


def start(*, foreground: bool, multi_user: bool) -> int:
    """Start a daemon. The caller returns once it listens."""
    if multi_user and os.getuid() != 0:
        print(f"{MULTI_USER} is only for root", file=sys.stderr)
        return 1
    if connected() is not None:
        print("An instance of this daemon is already running", file=sys.stderr)
        return 1
    PIPE.mkdir(parents=True, exist_ok=True)
    LOG.mkdir(parents=True, exist_ok=True)
    if foreground:
        Daemon(multi_user=multi_user).run()
        return 0
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            null = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(null, standard)
            daemon = Daemon(multi_user=multi_user)
            os.write(writer, b"y")
            os.close(writer)
            os.close(reader)
            daemon.run()
        os._exit(0)
    os.close(writer)
    os.wait()
    return 0 if os.read(reader, 1) else 1


def ask() -> int:
    """Send each line of the input to the daemon, and print its answers."""
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
    options = set(sys.argv[1:])
    starting = bool({"-d", "-f"} & options)
    sys.exit(start(foreground="-f" in options, multi_user=MULTI_USER in options) if starting else ask())
