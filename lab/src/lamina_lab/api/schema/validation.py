"""Validation with Kubernetes' messages: names, labels, and per kind what controllers and kubelets rely on."""

import re
from collections.abc import Callable

from lamina.ports.kube import Object
from lamina_lab.api.schema import device_validation, workload_validation
from lamina_lab.api.schema.limit_range_validation import limit_range
from lamina_lab.api.schema.pod_validation import ephemeral_update, no_ephemeral, pod_spec, pod_update
from lamina_lab.api.schema.resources import ApiResource
from lamina_lab.kubernetes.errors import (
    StatusCause,
    forbidden_field,
    invalid,
    invalid_value,
    required,
    unsupported_value,
)

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_VALUE}')"
)
KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def check_new(resource: ApiResource, obj: Object) -> None:
    """Validate a new object, whose types are already checked (shapes.py). Raises 422 with all causes."""
    causes = _metadata(resource, obj) + _body(resource, obj)
    if resource.storage == "pods":
        causes += no_ephemeral(obj["spec"], "spec", "cannot be set on create")
    _check(resource, obj, causes)


def check_update(resource: ApiResource, obj: Object, old: Object, subresource: str = "") -> None:
    """Validate an update, including immutable fields, through `subresource` if it has one of its own."""
    causes = _metadata(resource, obj)
    before, after = old.get("metadata", {}).get("finalizers") or [], obj["metadata"].get("finalizers") or []
    if "deletionTimestamp" in old["metadata"] and set(after) - set(before):
        detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {after}"
        causes.append(forbidden_field("metadata.finalizers", detail))
    immutable = _IMMUTABLE.get(f"{resource.storage}/{subresource}" if subresource else resource.storage)
    causes += _body(resource, obj)
    if not causes and immutable is not None:
        causes = immutable(obj, old)
    _check(resource, obj, causes)


def _check(resource: ApiResource, obj: Object, causes: list[StatusCause]) -> None:
    if causes:
        raise invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), causes)


def _metadata(resource: ApiResource, obj: Object) -> list[StatusCause]:
    meta = obj["metadata"]
    causes = _name(resource, meta.get("name", ""))
    for key, value in (meta.get("labels") or {}).items():
        causes += _label(key, value)
    for key in meta.get("annotations") or {}:
        causes += _key("metadata.annotations", key)
    for at, owner in enumerate(meta.get("ownerReferences") or []):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                causes.append(invalid_value(f"metadata.ownerReferences[{at}].{field}", "", "must not be empty"))
    return causes


def _name(resource: ApiResource, name: str) -> list[StatusCause]:
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    if resource.group == "rbac.authorization.k8s.io":
        bad = name in (".", "..") or "/" in name or "%" in name
        return [invalid_value("metadata.name", name, "may not contain '/' or '%'")] if bad else []
    short = resource.storage in ("namespaces", "services")
    limit, rule, form = (63, LABEL_RULE, _LABEL) if short else (253, SUBDOMAIN_RULE, _SUBDOMAIN)
    causes = []
    if len(name) > limit:
        causes.append(invalid_value("metadata.name", name, f"must be no more than {limit} bytes"))
    if not re.fullmatch(form, name):
        causes.append(invalid_value("metadata.name", name, rule))
    return causes


def _label(key: str, value: str) -> list[StatusCause]:
    causes = _key("metadata.labels", key)
    if len(value) > 63:
        causes.append(invalid_value("metadata.labels", value, "must be no more than 63 bytes"))
    if not re.fullmatch(_VALUE, value):
        causes.append(invalid_value("metadata.labels", value, VALUE_RULE))
    return causes


def _key(field: str, key: str) -> list[StatusCause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not re.fullmatch(_SUBDOMAIN, prefix.lower()):
        return [invalid_value(field, key, f"prefix part {SUBDOMAIN_RULE}")]
    if len(name) > 63:
        return [invalid_value(field, key, "name part must be no more than 63 bytes")]
    if not re.fullmatch(_KEY, name):
        return [invalid_value(field, key, KEY_RULE)]
    return []


def _body(resource: ApiResource, obj: Object) -> list[StatusCause]:
    rule = _RULES.get(resource.storage)
    return rule(obj) if rule else []


def _pod(obj: Object) -> list[StatusCause]:
    return pod_spec(obj.get("spec") or {}, "spec")


def _crd(obj: Object) -> list[StatusCause]:
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    causes = [required(f"spec.{field}") for field in ("group", "scope", "versions") if not spec.get(field)]
    causes += [required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)]
    if causes:
        return causes
    if obj["metadata"].get("name") != f"{names['plural']}.{spec['group']}":
        name = obj["metadata"].get("name")
        causes.append(invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if spec["scope"] not in ("Namespaced", "Cluster"):
        causes.append(unsupported_value("spec.scope", spec["scope"], ["Cluster", "Namespaced"]))
    if sum(1 for version in spec["versions"] if version.get("storage")) != 1:
        causes.append(
            StatusCause("spec.versions", "Invalid value: must have exactly one version marked as storage version")
        )
    for at, version in enumerate(spec["versions"]):
        if not version.get("name"):
            causes.append(required(f"spec.versions[{at}].name"))
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            causes.append(required(f"spec.versions[{at}].schema.openAPIV3Schema", "schemas are required"))
    return causes


def _webhooks(obj: Object) -> list[StatusCause]:
    causes = []
    for at, hook in enumerate(obj.get("webhooks") or []):
        field = f"webhooks[{at}]"
        config = hook.get("clientConfig") or {}
        if not hook.get("name"):
            causes.append(required(f"{field}.name"))
        if config.get("service"):
            detail = "this API has no services to route through; give clientConfig.url"
            causes.append(forbidden_field(f"{field}.clientConfig.service", detail))
        elif not config.get("url", "").startswith("https://"):
            shown = config.get("url", "")
            causes.append(invalid_value(f"{field}.clientConfig.url", shown, "'https' is the only allowed URL scheme"))
        if not hook.get("sideEffects"):
            causes.append(required(f"{field}.sideEffects", "must specify one of None, NoneOnDryRun"))
        if not hook.get("admissionReviewVersions"):
            causes.append(required(f"{field}.admissionReviewVersions", "must specify one of v1, v1beta1"))
    return causes


def _unchanged(*fields: str) -> Callable[[Object, Object], list[StatusCause]]:
    """These fields of the spec are immutable, or all of them."""

    def rule(obj: Object, old: Object) -> list[StatusCause]:
        now, then = obj["spec"], old["spec"]
        changed = [field for field in fields or sorted({*now, *then}) if now.get(field) != then.get(field)]
        return [
            StatusCause(f"spec.{field}", f"Invalid value: {now.get(field)}: field is immutable") for field in changed
        ]

    return rule


def _role_reference(binding: Object, old: Object) -> list[StatusCause]:
    """A binding keeps its role: who may write bindings could otherwise pass on another one to its subjects."""
    if binding.get("roleRef") == old.get("roleRef"):
        return []
    return [StatusCause("roleRef", f"Invalid value: {binding.get('roleRef')}: cannot change roleRef")]


_RULES: dict[str, Callable[[Object], list[StatusCause]]] = {
    "limitranges": limit_range,
    "pods": _pod,
    "deployments.apps": workload_validation.workload,
    "replicasets.apps": workload_validation.workload,
    "daemonsets.apps": workload_validation.workload,
    "statefulsets.apps": workload_validation.stateful_set,
    "cronjobs.batch": workload_validation.cron_job,
    "jobs.batch": workload_validation.job,
    "customresourcedefinitions.apiextensions.k8s.io": _crd,
    "resourceclaims.resource.k8s.io": device_validation.claim,
    "resourceclaimtemplates.resource.k8s.io": device_validation.template,
    "deviceclasses.resource.k8s.io": device_validation.device_class,
    "resourceslices.resource.k8s.io": device_validation.resource_slice,
    "devicetaintrules.resource.k8s.io": device_validation.taint_rule,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks,
}

_IMMUTABLE: dict[str, Callable[[Object, Object], list[StatusCause]]] = {
    "pods": pod_update,
    "pods/ephemeralcontainers": ephemeral_update,
    "deployments.apps": _unchanged("selector"),
    "replicasets.apps": _unchanged("selector"),
    "daemonsets.apps": _unchanged("selector"),
    "statefulsets.apps": workload_validation.stateful_set_update,
    "jobs.batch": _unchanged("selector", "template", "completions"),
    "customresourcedefinitions.apiextensions.k8s.io": _unchanged("group", "scope"),
    "rolebindings.rbac.authorization.k8s.io": _role_reference,
    "clusterrolebindings.rbac.authorization.k8s.io": _role_reference,
    "resourceclaims.resource.k8s.io": _unchanged(),
    "resourceclaimtemplates.resource.k8s.io": _unchanged(),
    "resourceslices.resource.k8s.io": _unchanged("driver", "nodeName"),
}
