"""A kube-scheduler of the cluster's version, which asks the control part about pods with GPUs.

Its configuration follows ours: an init container writes it, with the names of profiles and resources in force.
"""

from typing import Any

from lamina.dialects.config import CONFIG_MAP, CONFIG_MAP_KEY
from lamina.install.accounts import SCHEDULER_WANTED
from lamina.install.names import SCHEDULER
from lamina.install.pods import (
    IMAGE,
    UNPRIVILEGED,
    apart,
    deployment,
    disruption_budget,
    placed,
    port,
    probe,
    started,
    template,
)
from lamina.install.terms import ClusterVersion, Joined, Or, Value, When

PORT = 10259
_CONFIGURATION, _WRITTEN = "/etc/lamina", "/etc/lamina-scheduler"


def scheduler() -> list[Any]:
    """All objects of the scheduler but accounts and network policies."""
    made = deployment(SCHEDULER, "scheduler", _template())
    return [When(SCHEDULER_WANTED, each) for each in (made, disruption_budget(SCHEDULER))]


def _template() -> dict[str, Any]:
    version = Or(Value("scheduler.image.tag"), ClusterVersion())
    configure = {
        "name": "configure",
        "image": IMAGE,
        "imagePullPolicy": Value("image.pullPolicy"),
        "args": [
            "scheduler-config",
            f"--config={_CONFIGURATION}/{CONFIG_MAP_KEY}",
            Joined("--kube-version=", version),
            Joined("--extender-url=", Value("scheduler.extenderUrl")),
            Joined("--weight=", Value("scheduler.weight")),
            f"--out={_WRITTEN}/config.yaml",
        ],
        "resources": Value("scheduler.resources"),
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [
            {"name": "configuration", "mountPath": _CONFIGURATION, "readOnly": True},
            {"name": "written", "mountPath": _WRITTEN},
        ],
    }
    serve = {
        "name": "scheduler",
        "image": Joined(Value("scheduler.image.repository"), ":", version),
        "command": ["kube-scheduler", f"--config={_WRITTEN}/config.yaml"],
        "ports": [port("metrics", PORT)],
        "startupProbe": started(PORT, scheme="HTTPS"),
        "livenessProbe": probe("/healthz", PORT, period_s=10, failures=6, scheme="HTTPS"),
        "readinessProbe": probe("/healthz", PORT, period_s=5, failures=3, scheme="HTTPS"),
        "resources": Value("scheduler.resources"),
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [{"name": "written", "mountPath": _WRITTEN, "readOnly": True}],
    }
    spec = {
        "priorityClassName": "system-cluster-critical",
        "affinity": apart(SCHEDULER),
        **placed("scheduler"),
        "initContainers": [configure],
        "containers": [serve],
        "volumes": [
            {"name": "configuration", "configMap": {"name": CONFIG_MAP}},
            {"name": "written", "emptyDir": {}},
        ],
    }
    return template(SCHEDULER, spec, follows_configuration=True)
