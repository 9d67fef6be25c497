"""What the pods of all components have in common.

Empty fields are omitted: Kubernetes drops empty lists, so kubectl would report a change at every apply. Ports name
their protocol, because servers before 1.21 require it in server-side apply, which Helm 4 uses.
"""

from typing import Any

from lamina import __version__
from lamina.core.component_names import NAMESPACE
from lamina.install.names import PART_OF, chosen, meta
from lamina.install.terms import Digest, Each, Given, Joined, Or, Since, Value, When

IMAGE = Joined(Value("image.repository"), ":", Or(Value("image.tag"), __version__))
_SECRETS = Value("image.pullSecrets")
PROTECTED_METRICS = Given(Value("metrics.protected"))
METRICS_SCHEME = When(PROTECTED_METRICS, "HTTPS", "HTTP")
"""Of probes at the address of metrics. kubelet does not verify certificates."""
UNPRIVILEGED_USER = 65532
"""The user ID of components that do not need root."""
_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
"""Of Prometheus, in its own pod."""
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The security context of containers without special needs."""
MOUNTING = RESTRICTED | {
    "runAsUser": 0,
    "privileged": True,
    "allowPrivilegeEscalation": True,  # Kubernetes requires it of a privileged container
    "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]},
}
"""That of containers which mount something that the node sees: only privileged ones may."""
UNPRIVILEGED = RESTRICTED | {"runAsNonRoot": True, "runAsUser": UNPRIVILEGED_USER, "runAsGroup": UNPRIVILEGED_USER}


def template(part: str, spec: dict[str, Any], *, follows_configuration: bool = False) -> dict[str, Any]:
    """A pod template. With `follows_configuration`, its pods restart when the configuration changes."""
    metadata: dict[str, Any] = {"labels": chosen(part) | PART_OF}
    if follows_configuration:
        metadata["annotations"] = {"lamina.dev/configuration": Digest(Value("config"))}
    return {
        "metadata": metadata,
        "spec": {"serviceAccountName": part, "imagePullSecrets": When(Given(_SECRETS), [Each(_SECRETS)]), **spec},
    }


def node_placement(values: str) -> dict[str, Any]:
    """Node selector and tolerations of a component, from its values."""
    selector, tolerations = Value(f"{values}.nodeSelector"), Value(f"{values}.tolerations")
    return {
        "nodeSelector": When(Given(selector), selector),
        "tolerations": When(Given(tolerations), [Each(tolerations)]),
    }


def spread_over_nodes(part: str) -> dict[str, Any]:
    """Affinity that spreads replicas over nodes."""
    term = {"labelSelector": {"matchLabels": chosen(part)}, "topologyKey": "kubernetes.io/hostname"}
    return {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
        }
    }


def deployment(part: str, values: str, template: dict[str, Any]) -> dict[str, Any]:
    """A Deployment whose replicas are replaced one by one, the new one first. Their volumes hold no data, so a cluster
    autoscaler may evict them."""
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
    """One replica at a time may be evicted. Unready ones always may, so that they do not block the drain of a node."""
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
) -> dict[str, Any]:
    """A Service. `ports` maps names to the port and the name of the pod's port. With `leader`, it selects only the pod
    with that label."""
    selector = chosen(part) | ({leader: "true"} if leader else {})
    listed = [
        {"name": port, "port": number, "targetPort": target, "protocol": "TCP"}
        for port, (number, target) in ports.items()
    ]
    spec = {"selector": selector, "ports": listed} | ({"clusterIP": "None"} if headless else {})
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta(name, part), "spec": spec}


def port(name: str, number: int) -> dict[str, Any]:
    """A container port."""
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def mounted_secret(name: str, secret: Value, at: str) -> tuple[When, When]:
    """The mount and the volume of a Secret, if the value names one."""
    mount = {"name": name, "mountPath": at, "readOnly": True}
    return When(Given(secret), mount), When(Given(secret), {"name": name, "secret": {"secretName": secret}})


def probe(path: str, port: str | int, *, period_s: int, failures: int, scheme: str | When = "HTTP") -> dict[str, Any]:
    """An HTTP probe."""
    return {
        "httpGet": {"path": path, "port": port, "scheme": scheme},
        "periodSeconds": period_s,
        "failureThreshold": failures,
        "timeoutSeconds": 5,
    }


def startup_probe(port: str | int, *, scheme: str | When = "HTTP") -> dict[str, Any]:
    """The startup probe. On a busy node, such as after a reboot, programs may take minutes to start."""
    return probe("/healthz", port, period_s=2, failures=150, scheme=scheme)


def monitor(name: str, part: str, ports: tuple[str, ...] = ("metrics",)) -> Any:
    """A ServiceMonitor for these ports of the Service `name`."""
    body = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": Value("serviceMonitor.labels")},
        "spec": {
            "selector": {"matchLabels": chosen(part)},
            "endpoints": [
                {
                    "port": port,
                    "honorLabels": True,  # or namespaces and pods would be those of the component
                    "scheme": When(PROTECTED_METRICS, "https"),
                    "tlsConfig": When(PROTECTED_METRICS, {"insecureSkipVerify": True}),
                    "bearerTokenFile": When(PROTECTED_METRICS, _TOKEN),
                }
                for port in ports
            ],
        },
    }
    return When(Given(Value("serviceMonitor.enabled")), body)
