"""The dashboard in the cluster: it only reads, and shows each viewer what the API server lets them list."""

from typing import Any

from lamina.install.names import DASHBOARD
from lamina.install.pods import (
    IMAGE,
    UNPRIVILEGED,
    deployment,
    node_placement,
    port,
    probe,
    service,
    spread_over_nodes,
    startup_probe,
    template,
)
from lamina.install.terms import Given, Value, When

DASHBOARD_PORT = 9396
DASHBOARD_WANTED = Given(Value("dashboard.enabled"))


def dashboard() -> list[Any]:
    """Its Service and its Deployment."""
    made = [
        service(DASHBOARD, DASHBOARD, {"https": (443, "https")}),
        deployment(DASHBOARD, "dashboard", _template()),
    ]
    return [When(DASHBOARD_WANTED, part) for part in made]


def _template() -> dict[str, Any]:
    container = {
        "name": "dashboard",
        "image": IMAGE,
        "imagePullPolicy": Value("image.pullPolicy"),
        "args": ["dashboard", f"--bind=:{DASHBOARD_PORT}"],
        "env": [{"name": "LAMINA_DASHBOARD_METRICS", "value": Value("dashboard.metrics")}],
        "ports": [port("https", DASHBOARD_PORT)],
        "startupProbe": startup_probe("https", scheme="HTTPS"),
        "livenessProbe": probe("/healthz", "https", period_s=10, failures=6, scheme="HTTPS"),
        "readinessProbe": probe("/readyz", "https", period_s=2, failures=3, scheme="HTTPS"),
        "resources": Value("dashboard.resources"),
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    spec = {
        "affinity": spread_over_nodes(DASHBOARD),
        **node_placement("dashboard"),
        "containers": [container],
        # The key of the certificate is loaded from there and stays in memory.
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }
    return template(DASHBOARD, spec)
