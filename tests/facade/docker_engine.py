"""What Docker's own client asks of its engine, by a stand-in of the engine that answers on a socket."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any

import pytest

VERSION = "1.44"
"""The API of Docker 25."""


class _Engine(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer({})

    def do_GET(self) -> None:
        self._answer({"ApiVersion": VERSION, "OSType": "linux"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requested += body["HostConfig"]["DeviceRequests"]  # type: ignore[attr-defined]
        self._answer({"Id": "0" * 64, "Warnings": []})

    def _answer(self, answer: dict[str, object]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(201 if self.command == "POST" else 200)
        for header, value in (("Api-Version", VERSION), ("Content-Type", "application/json")):
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def address_string(self) -> str:
        return "client"

    def log_message(self, *_: object) -> None: ...


class _Server(ThreadingUnixStreamServer):
    requested: list[dict[str, Any]]


class DockerEngine:
    def __init__(self, client: str, socket: Path, server: _Server) -> None:
        self._client, self._socket, self._server = client, socket, server

    def requests_of(self, *arguments: str) -> list[dict[str, Any]]:
        """The device requests of `docker create` with these arguments."""
        self._server.requested = []
        command = [self._client, "--host", f"unix://{self._socket}", "create", "--pull", "never", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return self._server.requested


@contextmanager
def engine(socket: Path) -> Iterator[DockerEngine]:
    """Skips the test where Docker's client is missing."""
    client = shutil.which("docker")
    if client is None:
        pytest.skip("there is no docker; Debian's package is docker-cli")
    with _Server(str(socket), _Engine) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield DockerEngine(client, socket, server)
        finally:
            server.shutdown()
