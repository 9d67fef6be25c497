"""Defaults that Kubernetes fills in on writes, as far as kubectl, controllers and kubelets rely on them."""

import base64
from collections.abc import Callable, Iterator

from lamina.ports.kube import Object
from lamina_lab.api.schema import crds
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.kubernetes.quantities import parse


def fill(resource: ApiResource, obj: Object) -> None:
    """Fill in defaults, in place and idempotently."""
    if resource.custom:
        return
    rule = _RULES.get(resource.storage)
    if rule is not None:
        rule(obj)


def initial_status(resource: ApiResource, obj: Object) -> None:
    """The initial status of a new object, in place. Nodes bring their own; all others start empty."""
    if resource.storage == "nodes":
        obj.setdefault("status", {})
    elif resource.storage == "pods":
        obj["status"] = {"phase": "Pending", "qosClass": quality(obj["spec"])}
    elif resource.storage == "namespaces":
        obj["status"] = {"phase": "Active"}
    elif resource.storage == "services":
        obj["status"] = {"loadBalancer": {}}
    elif resource.has_status and resource.custom:
        obj.pop("status", None)
    elif resource.has_status:
        obj["status"] = {}


def containers(spec: Object) -> Iterator[Object]:
    """Init containers first, then the others."""
    yield from spec.get("initContainers", ())
    yield from spec.get("containers", ())


def quality(spec: Object) -> str:
    """The quality-of-service class, from CPU and memory only, as in Kubernetes."""
    guaranteed, any_set = True, False
    for container in containers(spec):
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            request, limit = parse(requests.get(name)), parse(limits.get(name))
            any_set = any_set or bool(request) or bool(limit)
            guaranteed = guaranteed and bool(limit) and request == limit
    return "Guaranteed" if any_set and guaranteed else "Burstable" if any_set else "BestEffort"


def pod_spec(spec: Object) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    for container in (*containers(spec), *spec.get("ephemeralContainers", ())):
        _container(container)
    for volume in spec.get("volumes", ()):
        for kind in ("configMap", "secret", "downwardAPI", "projected"):
            if kind in volume:
                volume[kind].setdefault("defaultMode", 420)


def _container(container: Object) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    image = container.get("image", "")
    latest = image.endswith(":latest") or ":" not in image.rpartition("/")[2]
    container.setdefault("imagePullPolicy", "Always" if latest and "@" not in image else "IfNotPresent")
    container.setdefault("resources", {})
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            defaults = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
            container[probe] = {**defaults, **container[probe]}
    for variable in container.get("env", ()):
        source = variable.get("valueFrom", {})
        if "fieldRef" in source:
            source["fieldRef"].setdefault("apiVersion", "v1")


def _pod(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    pod_spec(spec)
    for container in containers(spec):  # in pods only, not in templates
        if "limits" in container["resources"]:
            container["resources"]["requests"] = {
                **container["resources"]["limits"],
                **container["resources"].get("requests", {}),
            }
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    spec.setdefault("priority", 0)
    _tolerations(spec)


def _tolerations(spec: Object) -> None:
    """Five minutes on a node that is not ready or not reachable, unless the pod says otherwise."""
    found = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(toleration.get("key") in (key, None) for toleration in found):
            found.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})


def _template(spec: Object) -> Object:
    template: Object = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    if "spec" in template:
        pod_spec(template["spec"])
    return template


def _deployment(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    _template(spec)


def _replicaset(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    labels = _template(spec)["metadata"].get("labels")
    if labels and "selector" not in spec:
        spec["selector"] = {"matchLabels": dict(labels)}


def _daemonset(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {"maxUnavailable": 1, "maxSurge": 0})
    _template(spec)


def _statefulset(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Retain", "whenScaled": "Retain"})
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("partition", 0)
        rolling.setdefault("maxUnavailable", 1)
    _template(spec)


def _revision(obj: Object) -> None:
    obj.setdefault("revision", 0)


def _job(obj: Object) -> None:
    """A job without a selector gets its uid as one, as in Kubernetes. The uid is set before defaults."""
    spec = obj.setdefault("spec", {})
    if "parallelism" not in spec:  # without both, one pod; with completions alone, one after another
        spec.setdefault("completions", 1)
        spec["parallelism"] = 1
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    template = _template(spec)
    uid = obj["metadata"].get("uid")
    if uid and not spec["manualSelector"] and "selector" not in spec:
        own = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": obj["metadata"].get("name")}
        older = {"controller-uid": uid, "job-name": obj["metadata"].get("name")}
        template["metadata"]["labels"] = {**template["metadata"].get("labels", {}), **own, **older}
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def _cronjob(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    _template(spec.setdefault("jobTemplate", {}).setdefault("spec", {}))


def _namespace(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    labels = obj["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = obj["metadata"].get("name", "")


def _node(obj: Object) -> None:
    obj.setdefault("spec", {})
    status = obj.setdefault("status", {})
    if "allocatable" not in status and "capacity" in status:
        status["allocatable"] = dict(status["capacity"])


def _service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("clusterIP", "None")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))


def _secret(obj: Object) -> None:
    """`stringData` becomes `data` and is dropped."""
    obj.setdefault("type", "Opaque")
    plain = obj.pop("stringData", {})
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
    if encoded:
        obj["data"] = {**obj.get("data", {}), **encoded}


def _limitrange(obj: Object) -> None:
    """For containers, the limit is by default the maximum, and the request the limit or the minimum."""
    for item in obj.setdefault("spec", {}).setdefault("limits", []):
        if item.get("type") == "Container":
            item["default"] = {**item.get("max", {}), **item.get("default", {})}
            item["defaultRequest"] = {**item.get("min", {}), **item["default"], **item.get("defaultRequest", {})}


def _webhooks(obj: Object) -> None:
    for hook in obj.get("webhooks", ()):
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        hook.setdefault("timeoutSeconds", 10)
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        if obj.get("kind") == "MutatingWebhookConfiguration":
            hook.setdefault("reinvocationPolicy", "Never")
        for rule in hook.get("rules", ()):
            rule.setdefault("scope", "*")


def _claim(obj: Object) -> None:
    _claim_spec(obj.setdefault("spec", {}))


def _claim_template(obj: Object) -> None:
    _claim_spec(obj.setdefault("spec", {}).setdefault("spec", {}))


def _claim_spec(spec: Object) -> None:
    for request in spec.get("devices", {}).get("requests", ()):
        for wanted in [request["exactly"]] if "exactly" in request else request.get("firstAvailable", ()):
            wanted.setdefault("allocationMode", "ExactCount")
            if wanted["allocationMode"] == "ExactCount":
                wanted.setdefault("count", 1)
            for toleration in wanted.get("tolerations", ()):
                toleration.setdefault("operator", "Equal")


def _event(obj: Object) -> None:
    obj.setdefault("type", "Normal")


_RULES: dict[str, Callable[[Object], None]] = {
    crds.STORAGE: crds.fill,
    "pods": _pod,
    "deployments.apps": _deployment,
    "replicasets.apps": _replicaset,
    "daemonsets.apps": _daemonset,
    "controllerrevisions.apps": _revision,
    "statefulsets.apps": _statefulset,
    "cronjobs.batch": _cronjob,
    "jobs.batch": _job,
    "limitranges": _limitrange,
    "namespaces": _namespace,
    "nodes": _node,
    "services": _service,
    "secrets": _secret,
    "events": _event,
    "resourceclaims.resource.k8s.io": _claim,
    "resourceclaimtemplates.resource.k8s.io": _claim_template,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks,
}
