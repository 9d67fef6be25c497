"""The API server by HTTP, as the cluster's administrator: a kubectl in the sandbox passes requests on from a socket.

A question takes some milliseconds. Each kubectl takes a tenth of a second of the machine, and tests wait for much.
"""

import json
import socket
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from tests.cluster.components.commands import Unavailable
from tests.cluster.components.daemons import Daemon
from tests.cluster.components.sandboxes import Sandbox

Object = dict[str, Any]
ANSWER_S = 60.0


class Missing(Unavailable):
    """The API server has no such object, or serves no such kind."""


class _Connection(HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ANSWER_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class ApiSocket:
    """Starts with the first question."""

    def __init__(
        self, sandbox: Sandbox, kubectl: Path, kubeconfig: Path, environment: Mapping[str, str], folder: Path
    ) -> None:
        self._path = folder / "api.sock"
        words = [kubectl, "--kubeconfig", kubeconfig, "proxy", "--unix-socket", self._path]
        self._proxy = Daemon(sandbox, "kubectl proxy", words, environment, folder / "logs" / "kubectl-proxy.log")

    def ask(self, method: str, path: str) -> Object:
        """The answer to a request. Raises Missing, and Unavailable for every other answer but 200, and for none."""
        if not self._proxy.running:
            self._path.unlink(missing_ok=True)
            self._proxy.start()
            self._proxy.until(self._path.exists, "its socket")
        try:
            with closing(_Connection(self._path)) as connection:
                connection.request(method, path)
                answer = connection.getresponse()
                text = answer.read().decode()
        except (OSError, HTTPException) as error:
            raise Unavailable(f"{method} {path}: {error}") from None
        if answer.status != 200:
            raise (Missing if answer.status == 404 else Unavailable)(f"{method} {path}: {answer.status} {text}")
        found: Object = json.loads(text)
        return found
