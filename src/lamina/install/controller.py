"""The controller and admission next to it: replicas that run as an ordinary user, the extender's Service to the leader,
admission's to all of them, and the webhook registration."""

from typing import Any

from lamina.core.component_names import ADMISSION_SERVICE, LEADER_LABEL, WEBHOOKS
from lamina.install.names import CONTROLLER, cluster_meta
from lamina.install.pods import (
    IMAGE,
    METRICS_SCHEME,
    PROTECTED_METRICS,
    UNPRIVILEGED,
    deployment,
    disruption_budget,
    monitor,
    mounted_secret,
    node_placement,
    port,
    probe,
    service,
    spread_over_nodes,
    startup_probe,
    template,
)
from lamina.install.terms import Given, Joined, Value, When

EXTENDER_PORT, EXTENDER_HTTP_PORT, ADMISSION_PORT, METRICS_PORT, ADMISSION_METRICS_PORT = 8445, 8080, 8443, 9395, 9396
EXTENDER_HTTP = Given(Value("controller.extenderHttp"))
PREEMPTS = Given(Value("controller.preemption"))
_SERVES_CLAIMS = Given(Value("dra.enabled"))
_EXTENDER_TLS = "/etc/lamina-extender-tls"
_METRICS = {
    "metrics": (METRICS_PORT, "metrics"),
    "admission-metrics": (ADMISSION_METRICS_PORT, "adm-metrics"),
}
"""By the names of their ports at the Service."""


def controller() -> list[Any]:
    """All objects of the controller except service accounts and network policies."""
    return [
        _extender_service(),
        service(ADMISSION_SERVICE, CONTROLLER, {"admission": (443, "admission")}),
        service(f"{CONTROLLER}-metrics", CONTROLLER, _METRICS, headless=True),
        monitor(f"{CONTROLLER}-metrics", CONTROLLER, tuple(_METRICS)),
        deployment(CONTROLLER, "controller", _template()),
        disruption_budget(CONTROLLER),
        _webhooks(),
    ]


def _extender_service() -> dict[str, Any]:
    made = service(CONTROLLER, CONTROLLER, {"extender": (EXTENDER_PORT, "extender")}, leader=LEADER_LABEL)
    http = {"name": "extender-http", "port": EXTENDER_HTTP_PORT, "targetPort": "extender-http", "protocol": "TCP"}
    made["spec"]["ports"].append(When(EXTENDER_HTTP, http))
    return made


def _webhooks() -> dict[str, Any]:
    """Empty: the controller fills in the webhooks once it can answer them. It is listed here so that it is deleted
    with everything else; otherwise a webhook without a backend would remain."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": cluster_meta(WEBHOOKS, CONTROLLER),
    }


def _template() -> dict[str, Any]:
    secret = Value("controller.extenderTlsSecret")
    tls_mount, tls_volume = mounted_secret("extender-tls", secret, _EXTENDER_TLS)
    binds = (("extender", EXTENDER_PORT), ("metrics", METRICS_PORT))
    container = {
        "name": "controller",
        "image": IMAGE,
        "imagePullPolicy": Value("image.pullPolicy"),
        "args": [
            "controller",
            *(f"--{name}-bind=:{number}" for name, number in binds),
            When(Given(secret), f"--extender-tls={_EXTENDER_TLS}"),
            When(EXTENDER_HTTP, f"--extender-http-bind=:{EXTENDER_HTTP_PORT}"),
            When(PROTECTED_METRICS, "--protect-metrics"),
            When(PREEMPTS, "--preemption"),
            When(_SERVES_CLAIMS, "--dra"),
            When(_SERVES_CLAIMS, Joined("--dra-driver=", Value("dra.driverName"))),
        ],
        "env": [{"name": "LAMINA_LOG_LEVEL", "value": Value("controller.logLevel")}],
        "ports": [
            *(port(name, number) for name, number in binds),
            When(EXTENDER_HTTP, port("extender-http", EXTENDER_HTTP_PORT)),
        ],
        "startupProbe": startup_probe("metrics", scheme=METRICS_SCHEME),
        "livenessProbe": probe("/healthz", "metrics", period_s=10, failures=6, scheme=METRICS_SCHEME),
        "readinessProbe": probe("/warmz", "metrics", period_s=2, failures=3, scheme=METRICS_SCHEME),
        "resources": Value("controller.resources"),
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, tls_mount],
    }
    spec = {
        "priorityClassName": "system-cluster-critical",
        "affinity": spread_over_nodes(CONTROLLER),
        **node_placement("controller"),
        "containers": [container, _admission()],
        # The keys of certificates are loaded from there and stay in memory.
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}, tls_volume],
    }
    return template(CONTROLLER, spec)


def _admission() -> dict[str, Any]:
    """It serves in each replica, also in those that do not lead."""
    return {
        "name": "admission",
        "image": IMAGE,
        "imagePullPolicy": Value("image.pullPolicy"),
        "args": [
            "admission",
            f"--bind=:{ADMISSION_PORT}",
            f"--metrics-bind=:{ADMISSION_METRICS_PORT}",
            When(PROTECTED_METRICS, "--protect-metrics"),
        ],
        "env": [
            {"name": "LAMINA_LOG_LEVEL", "value": Value("controller.logLevel")},
            # Otherwise glibc keeps the memory of large bodies when they have been answered.
            {"name": "MALLOC_MMAP_THRESHOLD_", "value": "131072"},
            {"name": "MALLOC_TRIM_THRESHOLD_", "value": "131072"},
        ],
        "ports": [port("admission", ADMISSION_PORT), port("adm-metrics", ADMISSION_METRICS_PORT)],
        "startupProbe": startup_probe("adm-metrics", scheme=METRICS_SCHEME),
        "livenessProbe": probe("/healthz", "adm-metrics", period_s=10, failures=6, scheme=METRICS_SCHEME),
        "readinessProbe": probe("/readyz", "adm-metrics", period_s=2, failures=3, scheme=METRICS_SCHEME),
        "resources": Value("controller.admissionResources"),
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
