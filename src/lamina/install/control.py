"""The control part: two replicas as an ordinary user, a Service to the one that leads, admission in front of it."""

from typing import Any

from lamina.control.leader_label import LABEL as LEADER
from lamina.control.webhook_configuration import NAME as WEBHOOKS
from lamina.control.webhook_configuration import SERVICE as ADMISSION
from lamina.install.names import CONTROL, cluster_meta
from lamina.install.pods import (
    IMAGE,
    UNPRIVILEGED,
    apart,
    deployment,
    disruption_budget,
    monitor,
    placed,
    port,
    probe,
    service,
    started,
    template,
)
from lamina.install.terms import Value

EXTENDER_PORT, ADMISSION_PORT, METRICS_PORT = 8080, 8443, 9395


def control() -> list[Any]:
    """All objects of the control part but accounts and network policies."""
    return [
        service(CONTROL, CONTROL, {"extender": (EXTENDER_PORT, "extender")}, leader=LEADER),
        service(ADMISSION, CONTROL, {"admission": (443, "admission")}, leader=LEADER),
        service(f"{CONTROL}-metrics", CONTROL, {"metrics": (METRICS_PORT, "metrics")}, headless=True),
        monitor(f"{CONTROL}-metrics", CONTROL),
        deployment(CONTROL, "control", _template()),
        disruption_budget(CONTROL),
        _webhooks(),
    ]


def _webhooks() -> dict[str, Any]:
    """Empty: the control part fills in what to send, once it is there to answer. It is listed here so that it goes
    with everything else: a webhook that nobody answers would be left behind otherwise."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": cluster_meta(WEBHOOKS, CONTROL),
    }


def _template() -> dict[str, Any]:
    binds = (("extender", EXTENDER_PORT), ("admission", ADMISSION_PORT), ("metrics", METRICS_PORT))
    container = {
        "name": "control",
        "image": IMAGE,
        "imagePullPolicy": Value("image.pullPolicy"),
        "args": ["control", *(f"--{name}-bind=:{number}" for name, number in binds)],
        "env": [{"name": "LAMINA_LOG_LEVEL", "value": Value("control.logLevel")}],
        "ports": [port(name, number) for name, number in binds],
        "startupProbe": started("metrics"),
        "livenessProbe": probe("/healthz", "metrics", period_s=10, failures=6),
        "readinessProbe": probe("/warmz", "metrics", period_s=2, failures=3),
        "resources": Value("control.resources"),
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    spec = {
        "priorityClassName": "system-cluster-critical",
        "affinity": apart(CONTROL),
        **placed("control"),
        "containers": [container],
        # The certificate's key is read from there, which happens in memory alone.
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }
    return template(CONTROL, spec)
