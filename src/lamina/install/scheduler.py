"""A kube-scheduler of the cluster's version, which calls the extender for pods with GPUs.

An init container writes its configuration, with the profiles and resources of Lamina's configuration.
"""

from typing import Any

from lamina.configuration import CONFIG_MAP, CONFIG_MAP_KEY
from lamina.core.component_names import EXTENDER_CLIENT_SECRET
from lamina.install.accounts import SCHEDULER_WANTED
from lamina.install.names import SCHEDULER
from lamina.install.pods import (
    IMAGE,
    UNPRIVILEGED,
    deployment,
    disruption_budget,
    node_placement,
    port,
    probe,
    spread_over_nodes,
    startup_probe,
    template,
)
from lamina.install.scheduler_config import EXTENDER_CERTIFICATES
from lamina.install.terms import ClusterVersion, Given, Joined, Or, Value, When

PORT = 10259
_CONFIGURATION, _WRITTEN = "/etc/lamina", "/etc/lamina-scheduler"


def scheduler() -> list[Any]:
    """All objects of the scheduler except service accounts and network policies."""
    replicas = deployment(SCHEDULER, "scheduler", _template())
    return [When(SCHEDULER_WANTED, part) for part in (replicas, disruption_budget(SCHEDULER))]


def _template() -> dict[str, Any]:
    secret = Or(Value("scheduler.extenderTlsSecret"), EXTENDER_CLIENT_SECRET)
    tls_mount = {"name": "extender-tls", "mountPath": EXTENDER_CERTIFICATES, "readOnly": True}
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
            f"--extender-tls={EXTENDER_CERTIFICATES}",
            Joined("--weight=", Value("scheduler.weight")),
            When(
                Given(Value("scheduler.scorePodsWithoutGpus")),
                "--score-pods-without-gpus",
                "--no-score-pods-without-gpus",
            ),
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
        "startupProbe": startup_probe(PORT, scheme="HTTPS"),
        "livenessProbe": probe("/healthz", PORT, period_s=10, failures=6, scheme="HTTPS"),
        "readinessProbe": probe("/healthz", PORT, period_s=5, failures=3, scheme="HTTPS"),
        "resources": Value("scheduler.resources"),
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [{"name": "written", "mountPath": _WRITTEN, "readOnly": True}, tls_mount],
    }
    spec = {
        "priorityClassName": "system-cluster-critical",
        "affinity": spread_over_nodes(SCHEDULER),
        **node_placement("scheduler"),
        "initContainers": [configure],
        "containers": [serve],
        "volumes": [
            {"name": "configuration", "configMap": {"name": CONFIG_MAP}},
            {"name": "written", "emptyDir": {}},
            # Where Lamina creates it, the pod waits until a controller has.
            {"name": "extender-tls", "secret": {"secretName": secret}},
        ],
    }
    return template(SCHEDULER, spec, follows_configuration=True)
