"""The settings with which admission is started."""

from pathlib import Path

from msgspec import Struct

from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.ports.listener import Address


class AdmissionSettings(Struct, frozen=True, kw_only=True):
    """The defaults suit a cluster."""

    kubeconfig: Path | None = None
    namespace: str = DEFAULT_NAMESPACE
    """Where Lamina is installed."""
    config: Path | None = None
    """A configuration file; without it the ConfigMap `lamina` is followed."""
    bind: Address = Address("", 8443)
    host: str = ""
    """The host under which the API server reaches it, for its certificate. Empty: the address of `bind` if that is a
    loopback address, or the Service `lamina-admission`."""
    metrics: Address | None = None
    """Where probes and metrics are served; None for no such address."""
    protect_metrics: bool = False
    """Whether metrics are served over HTTPS, and only to callers that the API server allows to get them."""
    addresses_file: Path | None = None
    """Written once it listens: a JSON object with the URLs of `admission` and, if it is served, `metrics`."""

    @property
    def own_host(self) -> str:
        """The host by which the API server reaches it directly; empty where it uses the Service."""
        return self.host or (self.bind.host if self.bind.is_loopback else "")
