"""Table rows of simple kinds."""

from typing import Any

from lamina.ports.kube import Object
from lamina_lab.api.printing.ages import age
from lamina_lab.api.printing.common import Layout, column, conditions, name, own_age, wide

_ROLE = "node-role.kubernetes.io/"


def _node(obj: Object, now: float) -> list[Any]:
    status, labels = obj.get("status") or {}, obj["metadata"].get("labels") or {}
    ready = conditions(obj).get("Ready")
    state = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    if (obj.get("spec") or {}).get("unschedulable"):
        state += ",SchedulingDisabled"
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    addresses = {address.get("type"): address.get("address") for address in status.get("addresses") or []}
    info = status.get("nodeInfo") or {}
    described = (info.get(field) or "<unknown>" for field in ("osImage", "kernelVersion", "containerRuntimeVersion"))
    return [
        name(obj),
        state,
        ",".join(sorted(roles)) or "<none>",
        own_age(obj, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        *described,
    ]


def _config_map(obj: Object, now: float) -> list[Any]:
    return [name(obj), len(obj.get("data") or {}) + len(obj.get("binaryData") or {}), own_age(obj, now)]


def _secret(obj: Object, now: float) -> list[Any]:
    return [name(obj), obj.get("type", ""), len(obj.get("data") or {}), own_age(obj, now)]


def _account(obj: Object, now: float) -> list[Any]:
    return [name(obj), len(obj.get("secrets") or []), own_age(obj, now)]


def _namespace(obj: Object, now: float) -> list[Any]:
    return [name(obj), (obj.get("status") or {}).get("phase", ""), own_age(obj, now)]


def _service(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    ports = []
    for port in spec.get("ports") or []:
        outer = f":{port['nodePort']}" if port.get("nodePort") else ""
        ports.append(f"{port.get('port')}{outer}/{port.get('protocol', 'TCP')}")
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    external = ",".join(spec.get("externalIPs") or []) or "<none>"
    shown = [spec.get("type", ""), spec.get("clusterIP", "<none>"), external, ",".join(ports) or "<none>"]
    return [name(obj), *shown, own_age(obj, now), selector or "<none>"]


def _event(obj: Object, now: float) -> list[Any]:
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    made = obj.get("eventTime") or obj["metadata"].get("creationTimestamp")
    series = obj.get("series") or {}
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or made
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp") or made
    count = series.get("count") or obj.get("count") or obj.get("deprecatedCount") or 1
    reporter = obj.get("reportingComponent") or obj.get("reportingController") or source.get("component", "")
    host = source.get("host") or obj.get("reportingInstance")
    target = f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"
    return [
        age(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        target,
        about.get("fieldPath", ""),
        f"{reporter}, {host}" if host else reporter,
        str(obj.get("message") or obj.get("note") or "").strip(),
        age(first, now),
        count,
        name(obj),
    ]


def _lease(obj: Object, now: float) -> list[Any]:
    return [name(obj), (obj.get("spec") or {}).get("holderIdentity", ""), own_age(obj, now)]


def _created_at(obj: Object, now: float) -> list[Any]:
    return [name(obj), obj["metadata"].get("creationTimestamp")]


def _webhooks(obj: Object, now: float) -> list[Any]:
    return [name(obj), len(obj.get("webhooks") or []), own_age(obj, now)]


def _role_binding(obj: Object, now: float) -> list[Any]:
    role = obj.get("roleRef") or {}
    return [name(obj), f"{role.get('kind')}/{role.get('name')}", own_age(obj, now)]


def _budget(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    bounds = [str(spec.get(field, "N/A")) for field in ("minAvailable", "maxUnavailable")]
    return [name(obj), *bounds, (obj.get("status") or {}).get("disruptionsAllowed", 0), own_age(obj, now)]


def _priority(obj: Object, now: float) -> list[Any]:
    policy = obj.get("preemptionPolicy", "PreemptLowerPriority")
    return [name(obj), obj.get("value", 0), obj.get("globalDefault", False), own_age(obj, now), policy]


_NAME, _AGE = column("Name"), column("Age")
_HOOKS = Layout((_NAME, column("Webhooks", "integer"), _AGE), _webhooks)
_CREATED = Layout((_NAME, column("Created At", "date")), _created_at)
_BINDING = Layout((_NAME, column("Role"), _AGE), _role_binding)

SIMPLE = {
    "nodes": Layout(
        (
            _NAME,
            column("Status"),
            column("Roles"),
            _AGE,
            column("Version"),
            wide("Internal-IP"),
            wide("External-IP"),
            wide("OS-Image"),
            wide("Kernel-Version"),
            wide("Container-Runtime"),
        ),
        _node,
    ),
    "configmaps": Layout((_NAME, column("Data"), _AGE), _config_map),
    "secrets": Layout((_NAME, column("Type"), column("Data"), _AGE), _secret),
    "serviceaccounts": Layout((_NAME, column("Secrets"), _AGE), _account),
    "namespaces": Layout((_NAME, column("Status"), _AGE), _namespace),
    "services": Layout(
        (
            _NAME,
            column("Type"),
            column("Cluster-IP"),
            column("External-IP"),
            column("Port(s)"),
            _AGE,
            wide("Selector"),
        ),
        _service,
    ),
    "events": Layout(
        (
            column("Last Seen"),
            column("Type"),
            column("Reason"),
            column("Object"),
            wide("Subobject"),
            wide("Source"),
            column("Message"),
            wide("First Seen"),
            wide("Count"),
            wide("Name"),
        ),
        _event,
    ),
    "leases.coordination.k8s.io": Layout((_NAME, column("Holder"), _AGE), _lease),
    "customresourcedefinitions.apiextensions.k8s.io": _CREATED,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _HOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _HOOKS,
    "roles.rbac.authorization.k8s.io": _CREATED,
    "clusterroles.rbac.authorization.k8s.io": _CREATED,
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "poddisruptionbudgets.policy": Layout(
        (_NAME, column("Min Available"), column("Max Unavailable"), column("Allowed Disruptions"), _AGE), _budget
    ),
    "priorityclasses.scheduling.k8s.io": Layout(
        (_NAME, column("Value", "integer"), column("Global-Default", "boolean"), _AGE, column("PreemptionPolicy")),
        _priority,
    ),
}
