"""The settings with which the controller is started."""

from pathlib import Path

from msgspec import Struct

from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.dra.names import DRIVER
from lamina.ports.listener import Address


class ControllerSettings(Struct, frozen=True, kw_only=True):
    """The defaults suit a cluster."""

    kubeconfig: Path | None = None
    context: str = ""
    """The kubeconfig's context; empty for its current one."""
    namespace: str = DEFAULT_NAMESPACE
    """Where Lamina is installed."""
    config: Path | None = None
    """A configuration file; without it the ConfigMap `lamina` is followed."""
    extender: Address | None = None
    """Where the extender is served over TLS, to clients with a certificate; None for no such address."""
    extender_tls: Path | None = None
    """A directory with the certificate of the extender and the authority of its clients; None for certificates that
    Lamina creates."""
    extender_http: Address | None = None
    """Where the extender is served over plain HTTP, to any client; None for no such address."""
    admission: Address | None = None
    """Where the API server reaches admission directly; None for the Service `lamina-admission`."""
    metrics: Address | None = None
    """An additional address for probes and metrics, apart from the extender's; None for no such address."""
    protect_metrics: bool = False
    """Whether metrics are served over HTTPS, and only to callers that the API server allows to get them."""
    preemption: bool = False
    """Whether the controller itself evicts pods for one that lacks GPU memory or compute alone."""
    dra: bool = False
    """Whether agents serve ResourceClaims, so that the controller makes classes and templates for them."""
    dra_driver: str = DRIVER
    """The name of their driver."""
    addresses_file: Path | None = None
    """Written once all services listen: a JSON object with their URLs: `extender`, `extenderHttp` and
    `metrics` where the settings have them."""
    identity: str = ""
    """The replica's name in the leader election; empty for the host name, which in a cluster is the pod's name."""

    @property
    def admission_host(self) -> str:
        """Empty where the API server reaches admission by the Service."""
        return self.admission.host if self.admission else ""

    @property
    def protects_probes(self) -> bool:
        return self.metrics is not None and self.protect_metrics
