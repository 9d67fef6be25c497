"""With what the control part is started."""

from pathlib import Path

from msgspec import Struct

from lamina.ports.listening import Address


class ControlSettings(Struct, frozen=True, kw_only=True):
    """All of them have a use on a cluster without being set.

    `config` names a file; without it the ConfigMap lamina-system/lamina is followed. The API server finds admission
    at `admission_host` and its port; without it, at its own address if that is a loopback one, else through the
    Service lamina-system/lamina-admission. `addresses_file` is written once both services listen: a JSON object with
    their URLs, `extender` and `admission`. `metrics` is where probes and Prometheus ask beside the extender's own
    address; None: nowhere. `identity` tells replicas apart; without it the host's name, which in a cluster is the
    pod's.
    """

    kubeconfig: Path | None = None
    context: str = ""
    config: Path | None = None
    extender: Address = Address("127.0.0.1", 8080)
    admission: Address = Address("", 8443)
    admission_host: str = ""
    metrics: Address | None = None
    addresses_file: Path | None = None
    identity: str = ""
