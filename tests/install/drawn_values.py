"""Values of an installation drawn at random: each key of the menu has its default, or one of the others listed here."""

from random import Random
from typing import Any

_TERMS = [{"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["on", "yes"]}]}]
_AFFINITY = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
_TOLERATIONS = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
_RESOURCES = {"limits": {"memory": "3Gi"}, "requests": {"cpu": "1", "memory": "200Mi"}}
_PEERS = [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}, {"ipBlock": {"cidr": "10.0.0.0/28"}}]
_TEXTS = {"note": "a <b> & \"c\": 'ü'\nand more", "{{ braces }}": "{{ .Values }}"}

MENU: dict[str, tuple[Any, ...]] = {
    "image.tag": ("1", "0.2.0-rc1"),
    "image.digest": (f"sha256:{'0a' * 32}",),
    "image.pullPolicy": ("Always",),
    "image.pullSecrets": ([{"name": "a"}, {"name": "b"}],),
    "config": (
        {"nodes": {"selector": _TEXTS}},
        {"resourceName": "example.com/gpu", "devicePlugin": {"deviceMemoryScaling": 1.5, "deviceSplitCount": 20}},
        {"apiVersion": "lamina.dev/v1alpha1", "kind": "Configuration", "sharing": {"slots": 4}},
    ),
    "controller.replicas": (1, 3),
    "controller.logLevel": ("DEBUG",),
    "controller.extenderTlsSecret": ("a-secret",),
    "controller.extenderHttp": (True,),
    "controller.defragmentation": (True,),
    "controller.idleShares": (True,),
    "controller.borrowers": (True,),
    "controller.preemption": (True,),
    "controller.nodeSelector": ({"role": "infra", "zone": "a"},),
    "controller.tolerations": (_TOLERATIONS,),
    "controller.resources": ({}, _RESOURCES),
    "controller.podLabels": ({"team": "gpus", "number": "1"},),
    "controller.podAnnotations": ({"example.com/note": 'a "b"'},),
    "controller.priorityClassName": ("", "high"),
    "controller.affinity": (_AFFINITY,),
    "controller.hostNetwork": (True,),
    "controller.dnsPolicy": ("Default",),
    "controller.ports.extender": (18445,),
    "controller.ports.extenderHttp": (18080,),
    "controller.ports.metrics": (19395,),
    "controller.ports.admission": (18443,),
    "controller.ports.admissionMetrics": (19396,),
    "controller.admissionResources": ({}, _RESOURCES),
    "scheduler.enabled": (False,),
    "scheduler.replicas": (1, 3),
    "scheduler.image.repository": ("example.com/ks",),
    "scheduler.image.tag": ("v1.28.1",),
    "scheduler.extenderUrl": ("https://10.96.0.20:8445",),
    "scheduler.weight": (1, 100),
    "scheduler.scorePodsWithoutGpus": (False,),
    "scheduler.nodeSelector": ({"role": "infra"},),
    "scheduler.tolerations": (_TOLERATIONS,),
    "scheduler.resources": ({}, _RESOURCES),
    "scheduler.podLabels": ({"team": "gpus"},),
    "scheduler.podAnnotations": ({"a": "1"},),
    "scheduler.priorityClassName": ("high",),
    "scheduler.affinity": (_AFFINITY,),
    "agent.nodeSelectorTerms": ([], _TERMS),
    "agent.nodeSelector": ({"gpu": "on", "zone": "true"},),
    "agent.tolerations": ([], _TOLERATIONS),
    "agent.driverDir": ("/run/nvidia/driver/usr/lib64",),
    "agent.kubeletDir": ("/k",),
    "agent.cdiDir": ("/etc/cdi",),
    "agent.stateDir": ("/srv/lamina",),
    "agent.filesMiB": (0, 128),
    "agent.pools": (
        [{"name": "arm64", "driverDir": "/usr/lib/aarch64-linux-gnu"}],
        [{"name": "a.b", "kubeletDir": "/k2"}, {"name": "c", "cdiDir": "/etc/cdi"}],
    ),
    "agent.poolLabel": ("kubernetes.io/arch",),
    "agent.runtimeClassName": ("nvidia",),
    "agent.nvidiaNamespace": ("nvidia", "123"),
    "agent.mig": (True,),
    "agent.mps": (True,),
    "agent.updateStrategy": ({"type": "OnDelete"},),
    "agent.logLevel": ("ERROR",),
    "agent.env": ([{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],),
    "agent.volumes": ([{"name": "machine", "hostPath": {"path": "/machine"}}],),
    "agent.volumeMounts": ([{"name": "machine", "mountPath": "/machine"}],),
    "agent.resources": ({"limits": None, "requests": {"cpu": "1"}}, _RESOURCES),
    "agent.podLabels": ({"team": "gpus"},),
    "agent.podAnnotations": ({"a": "1"},),
    "agent.priorityClassName": ("", "high"),
    "mps.sharedMemoryMiB": (1, 524288),
    "mps.multiUser": (True,),
    "mps.resources": ({}, _RESOURCES),
    "dra.enabled": (True,),
    "dra.driverName": ("gpu.example.com",),
    "dra.bindingConditions": (True,),
    "openshift.enabled": (True,),
    "dashboard.enabled": (True,),
    "dashboard.replicas": (2,),
    "dashboard.metrics": ("http://a/metrics http://b/metrics",),
    "dashboard.nodeSelector": ({"role": "infra"},),
    "dashboard.tolerations": (_TOLERATIONS,),
    "dashboard.resources": ({}, _RESOURCES),
    "dashboard.podLabels": ({"team": "gpus"},),
    "dashboard.podAnnotations": ({"a": "1"},),
    "dashboard.priorityClassName": ("high",),
    "dashboard.affinity": (_AFFINITY,),
    "networkPolicy.enabled": (False,),
    "networkPolicy.extenderFrom": ([], _PEERS),
    "networkPolicy.metricsFrom": (_PEERS,),
    "metrics.protected": (True,),
    "metrics.dashboards": (True,),
    "metrics.dashboardLabels": ({"grafana_dashboard": "yes", "team": "1"},),
    "metrics.rules": (True,),
    "metrics.ruleLabels": ({"release": "prometheus"},),
    "metrics.runbooks": ("https://docs.example/lamina", "https://docs.example/"),
    "serviceMonitor.enabled": (True,),
    "serviceMonitor.labels": ({"release": "prometheus"},),
}
"""What each value can be besides its default."""
VERSIONS = (
    *("1.20.2", "v1.21.14", "v1.24.3-eks-b2c4", "v1.27.4+k3s1"),
    *("1.29.3-gke.1282000", "v1.30.0", "v1.32.1", "v1.36.2"),
)


def drawn_values(seed: int) -> tuple[dict[str, Any], str]:
    """Values and a version of Kubernetes. Some draws change little, others nearly everything."""
    random = Random(seed)
    share = random.random()
    values: dict[str, Any] = {}
    for path, others in MENU.items():
        if random.random() < share:
            *sections, key = path.split(".")
            section = values
            for each in sections:
                section = section.setdefault(each, {})
            section[key] = random.choice(others)
    if values.get("openshift", {}).get("enabled"):
        values.get("controller", {}).pop("hostNetwork", None)
    if "extenderTlsSecret" in values.get("controller", {}):
        values.setdefault("scheduler", {})["extenderTlsSecret"] = "b-secret"
    return values, VERSIONS[seed % len(VERSIONS)]
