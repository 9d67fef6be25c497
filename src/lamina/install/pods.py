"""What the pods of all parts have in common.

What is empty is left out: Kubernetes keeps no empty lists, so kubectl would call each pod changed at every apply. Ports
name their protocol, since servers before 1.21 refuse lists of ports without it in server-side apply, as Helm 4 does it.
"""

from typing import Any

from lamina import __version__
from lamina.install.names import NAMESPACE, PART_OF, chosen, meta
from lamina.install.terms import Digest, Each, Given, Joined, Or, Since, Value, When

IMAGE = Joined(Value("image.repository"), ":", Or(Value("image.tag"), __version__))
_SECRETS = Value("image.pullSecrets")
ANYBODY = 65532
"""The user that parts without a need for root run as."""
HELD = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The security of every container that needs nothing."""
UNPRIVILEGED = HELD | {"runAsNonRoot": True, "runAsUser": ANYBODY, "runAsGroup": ANYBODY}


def template(part: str, spec: dict[str, Any], *, follows_configuration: bool = False) -> dict[str, Any]:
    """A pod template; one that `follows_configuration` is made anew with every other one."""
    metadata: dict[str, Any] = {"labels": chosen(part) | PART_OF}
    if follows_configuration:
        metadata["annotations"] = {"lamina.dev/configuration": Digest(Value("config"))}
    return {
        "metadata": metadata,
        "spec": {"serviceAccountName": part, "imagePullSecrets": When(Given(_SECRETS), [Each(_SECRETS)]), **spec},
    }


def placed(values: str) -> dict[str, Any]:
    """Node selector and tolerations of a part, from its values."""
    selector, tolerations = Value(f"{values}.nodeSelector"), Value(f"{values}.tolerations")
    return {
        "nodeSelector": When(Given(selector), selector),
        "tolerations": When(Given(tolerations), [Each(tolerations)]),
    }


def apart(part: str) -> dict[str, Any]:
    """Replicas on nodes of their own where there are enough."""
    term = {"labelSelector": {"matchLabels": chosen(part)}, "topologyKey": "kubernetes.io/hostname"}
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
        }
    }


def deployment(part: str, values: str, template: dict[str, Any]) -> dict[str, Any]:
    """Replicas that are replaced one by one, a new one first. None of them keeps anything in its volumes, for which
    a cluster's autoscaler would keep their nodes."""
    metadata = template["metadata"]
    annotations = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"} | metadata.get("annotations", {})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(part, part),
        "spec": {
            "replicas": Value(f"{values}.replicas"),
            "selector": {"matchLabels": chosen(part)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": template | {"metadata": metadata | {"annotations": annotations}},
        },
    }


def disruption_budget(part: str) -> dict[str, Any]:
    """One replica at a time may be evicted, and those that are not ready at any time: they would keep their nodes from
    being drained."""
    return {
        "apiVersion": When(Since(1, 21), "policy/v1", "policy/v1beta1"),
        "kind": "PodDisruptionBudget",
        "metadata": meta(part, part),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": chosen(part)},
            "unhealthyPodEvictionPolicy": When(Since(1, 27), "AlwaysAllow"),
        },
    }


def service(
    name: str, part: str, ports: dict[str, tuple[int, str]], *, leader: str = "", headless: bool = False
) -> Any:
    """`ports` are, by name, the port and the pod's port by name. With the label `leader` it leads to who carries it."""
    selector = chosen(part) | ({leader: "true"} if leader else {})
    listed = [
        {"name": port, "port": number, "targetPort": target, "protocol": "TCP"}
        for port, (number, target) in ports.items()
    ]
    spec = {"selector": selector, "ports": listed} | ({"clusterIP": "None"} if headless else {})
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta(name, part), "spec": spec}


def port(name: str, number: int) -> dict[str, Any]:
    """A port of a container."""
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def probe(path: str, port: str | int, *, period_s: int, failures: int, scheme: str = "HTTP") -> dict[str, Any]:
    """A probe by HTTP."""
    return {
        "httpGet": {"path": path, "port": port, "scheme": scheme},
        "periodSeconds": period_s,
        "failureThreshold": failures,
        "timeoutSeconds": 5,
    }


def started(port: str | int, *, scheme: str = "HTTP") -> dict[str, Any]:
    """The probe before all others. On a node with much to do, such as after a reboot, programs may take minutes to
    start; whoever ends them for that has them start again."""
    return probe("/healthz", port, period_s=2, failures=150, scheme=scheme)


def monitor(name: str, part: str) -> Any:
    """What tells the Prometheus operator to read the port `metrics` of the Service `name`."""
    body = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": Value("serviceMonitor.labels")},
        "spec": {
            "selector": {"matchLabels": chosen(part)},
            "endpoints": [{"port": "metrics"}],
        },
    }
    return When(Given(Value("serviceMonitor.enabled")), body)
