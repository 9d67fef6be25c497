"""What Kubernetes refuses, in its words: names, labels, and per kind what controllers and kubelets must rely upon."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lamina.lab.api.resources import Resource
from lamina.lab.api.status import (
    ApiError,
    Cause,
    Obj,
    bad_request,
    forbidden_field,
    invalid,
    invalid_value,
    required,
    unsupported_value,
)
from lamina.lab.api.validation_pods import pod_spec, pod_update

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


def check_new(resource: Resource, obj: Obj) -> None:
    """Raises 422 with every cause, or 400 for what is not even of the right shape."""
    _check(resource, obj, _metadata(resource, obj) + _body(resource, obj))


def check_update(resource: Resource, obj: Obj, old: Obj) -> None:
    """The same, and that nothing changed which must not."""
    causes = _metadata(resource, obj)
    before, after = old.get("metadata", {}).get("finalizers") or [], obj["metadata"].get("finalizers") or []
    if "deletionTimestamp" in old["metadata"] and set(after) - set(before):
        detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {after}"
        causes.append(forbidden_field("metadata.finalizers", detail))
    immutable = _IMMUTABLE.get(resource.storage)
    causes += _body(resource, obj)
    if not causes and immutable is not None:
        causes = immutable(obj, old)
    _check(resource, obj, causes)


def _check(resource: Resource, obj: Obj, causes: list[Cause]) -> None:
    if causes:
        raise invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), causes)


def wrong_type(resource: Resource, found: object, field: str, wanted: str) -> ApiError:
    """What the JSON decoder of Kubernetes says about a value of another type."""
    kinds = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    message = (
        f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: json: cannot '
        f"unmarshal {kinds.get(type(found), 'null')} into Go struct field {field} of type {wanted}"
    )
    return bad_request(message)


def check_shape(resource: Resource, obj: Obj) -> None:
    """Types that everything after relies upon. Raises 400."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        raise wrong_type(resource, meta, f"{resource.kind}.metadata", "v1.ObjectMeta")
    for name in ("labels", "annotations"):
        found = meta.get(name)
        if found is not None and not isinstance(found, dict):
            raise wrong_type(resource, found, f"ObjectMeta.metadata.{name}", "map[string]string")
        for value in (found or {}).values():
            if not isinstance(value, str):
                raise wrong_type(resource, value, f"ObjectMeta.metadata.{name}", "string")
    for name in ("ownerReferences", "finalizers"):
        if meta.get(name) is not None and not isinstance(meta[name], list):
            raise wrong_type(resource, meta[name], f"ObjectMeta.metadata.{name}", "array")
    for name in ("spec", "status"):
        if obj.get(name) is not None and not isinstance(obj[name], dict):
            raise wrong_type(resource, obj[name], f"{resource.kind}.{name}", f"v1.{resource.kind}{name.title()}")


def _metadata(resource: Resource, obj: Obj) -> list[Cause]:
    meta = obj["metadata"]
    causes = _name(resource, meta.get("name"))
    for key, value in (meta.get("labels") or {}).items():
        causes += _label(key, value)
    for key in meta.get("annotations") or {}:
        causes += _key("metadata.annotations", key)
    for at, owner in enumerate(meta.get("ownerReferences") or []):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not isinstance(owner, dict) or not owner.get(field):
                what = "must not be empty"
                causes.append(invalid_value(f"metadata.ownerReferences[{at}].{field}", "", what))
    return causes


def _name(resource: Resource, name: Any) -> list[Cause]:
    if not isinstance(name, str) or not name:
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


def _label(key: str, value: str) -> list[Cause]:
    causes = _key("metadata.labels", key)
    if len(value) > 63:
        causes.append(invalid_value("metadata.labels", value, "must be no more than 63 bytes"))
    if not re.fullmatch(_VALUE, value):
        causes.append(invalid_value("metadata.labels", value, VALUE_RULE))
    return causes


def _key(field: str, key: str) -> list[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not re.fullmatch(_SUBDOMAIN, prefix.lower()):
        return [invalid_value(field, key, f"prefix part {SUBDOMAIN_RULE}")]
    if len(name) > 63:
        return [invalid_value(field, key, "name part must be no more than 63 bytes")]
    if not re.fullmatch(_KEY, name):
        return [invalid_value(field, key, KEY_RULE)]
    return []


def _body(resource: Resource, obj: Obj) -> list[Cause]:
    rule = _RULES.get(resource.storage)
    return rule(obj) if rule else []


def _pod(obj: Obj) -> list[Cause]:
    return pod_spec(obj.get("spec"), "spec")


def _selector(spec: Obj) -> list[Cause]:
    selector = spec.get("selector")
    if not isinstance(selector, dict) or not selector:
        return [required("spec.selector")]
    wanted = selector.get("matchLabels") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        shown = "{" + ", ".join(f'"{key}":"{value}"' for key, value in labels.items()) + "}"
        detail = "`selector` does not match template `labels`"
        return [Cause("spec.template.metadata.labels", f"Invalid value: {shown}: {detail}")]
    return []


def _whole(spec: Obj, field: str) -> list[Cause]:
    value = spec.get(field)
    if value is None:
        return []
    if isinstance(value, bool) or not isinstance(value, int):
        return [invalid_value(f"spec.{field}", value, "must be an integer")]
    return [invalid_value(f"spec.{field}", value, "must be greater than or equal to 0")] if value < 0 else []


def _workload(obj: Obj) -> list[Cause]:
    spec = obj["spec"]
    causes = _whole(spec, "replicas") + _selector(spec)
    template = (spec.get("template") or {}).get("spec")
    causes += pod_spec(template, "spec.template.spec")
    policy = template.get("restartPolicy") if isinstance(template, dict) else "Always"
    if policy != "Always":
        causes.append(unsupported_value("spec.template.spec.restartPolicy", policy, ["Always"]))
    return causes


def _job(obj: Obj) -> list[Cause]:
    spec = obj["spec"]
    causes = [cause for field in ("parallelism", "completions", "backoffLimit") for cause in _whole(spec, field)]
    template = (spec.get("template") or {}).get("spec")
    causes += pod_spec(template, "spec.template.spec")
    policy = template.get("restartPolicy") if isinstance(template, dict) else None
    if policy not in ("OnFailure", "Never"):
        causes.append(unsupported_value("spec.template.spec.restartPolicy", policy, ["OnFailure", "Never"]))
    return causes


def _crd(obj: Obj) -> list[Cause]:
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
    if sum(1 for each in spec["versions"] if each.get("storage")) != 1:
        causes.append(Cause("spec.versions", "Invalid value: must have exactly one version marked as storage version"))
    for at, each in enumerate(spec["versions"]):
        if not (each.get("schema") or {}).get("openAPIV3Schema"):
            causes.append(required(f"spec.versions[{at}].schema.openAPIV3Schema", "schemas are required"))
    return causes


def _webhooks(obj: Obj) -> list[Cause]:
    causes = []
    for at, hook in enumerate(obj.get("webhooks") or []):
        field = f"webhooks[{at}]"
        config = hook.get("clientConfig") or {}
        if not hook.get("name"):
            causes.append(required(f"{field}.name"))
        if config.get("service"):
            detail = "this API has no services to route through; give clientConfig.url"
            causes.append(forbidden_field(f"{field}.clientConfig.service", detail))
        elif not str(config.get("url", "")).startswith("https://"):
            shown = config.get("url", "")
            causes.append(invalid_value(f"{field}.clientConfig.url", shown, "'https' is the only allowed URL scheme"))
        if not hook.get("sideEffects"):
            causes.append(required(f"{field}.sideEffects", "must specify one of None, NoneOnDryRun"))
        if not hook.get("admissionReviewVersions"):
            causes.append(required(f"{field}.admissionReviewVersions", "must specify one of v1, v1beta1"))
    return causes


def _unchanged(*fields: str) -> Callable[[Obj, Obj], list[Cause]]:
    def rule(obj: Obj, old: Obj) -> list[Cause]:
        now, then = obj["spec"], old["spec"]
        changed = [field for field in fields if now.get(field) != then.get(field)]
        return [Cause(f"spec.{field}", f"Invalid value: {now.get(field)}: field is immutable") for field in changed]

    return rule


_RULES: dict[str, Callable[[Obj], list[Cause]]] = {
    "pods": _pod,
    "deployments.apps": _workload,
    "replicasets.apps": _workload,
    "daemonsets.apps": _workload,
    "jobs.batch": _job,
    "customresourcedefinitions.apiextensions.k8s.io": _crd,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _webhooks,
}

_IMMUTABLE: dict[str, Callable[[Obj, Obj], list[Cause]]] = {
    "pods": pod_update,
    "deployments.apps": _unchanged("selector"),
    "replicasets.apps": _unchanged("selector"),
    "daemonsets.apps": _unchanged("selector"),
    "jobs.batch": _unchanged("selector", "template", "completions"),
    "customresourcedefinitions.apiextensions.k8s.io": _unchanged("group", "scope"),
}
