"""With what the control part is started."""

import ipaddress
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from lamina.errors import BadInput


class Address(NamedTuple):
    """Where a service listens. Port 0 takes a free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, *, where: str) -> Address:
    """An address such as `127.0.0.1:8080`, `[::1]:8080` or `:8443` (all interfaces). Raises BadInput."""
    host, colon, port = text.rpartition(":")
    if (
        not colon
        or not port.isascii()
        or not port.isdigit()
        or int(port) > 65535
        or (":" in host.strip("[]")) != (host.startswith("[") and host.endswith("]"))
    ):
        raise BadInput(f"{where}: {text!r} is not an address; allowed is HOST:PORT such as 127.0.0.1:8080")
    return Address(host.strip("[]") or "0.0.0.0", int(port))


class ControlSettings(Struct, frozen=True, kw_only=True):
    """All of them have a use on a cluster without being set.

    `config` names a file; without it the ConfigMap lamina-system/lamina is followed. The API server finds admission
    at `admission_host` and its port; without it, at its own address if that is a loopback one, else through the
    Service lamina-system/lamina-admission. `addresses_file` is written once both services listen: a JSON object with
    their URLs, `extender` and `admission`. `identity` tells replicas apart; without it the host's name, which in a
    cluster is the pod's.
    """

    kubeconfig: Path | None = None
    context: str = ""
    config: Path | None = None
    extender: Address = Address("127.0.0.1", 8080)
    admission: Address = Address("0.0.0.0", 8443)
    admission_host: str = ""
    addresses_file: Path | None = None
    identity: str = ""
