"""Validation of pod specs, also in templates."""

import re
from typing import Any

from lamina.ports.kube import Object
from lamina_lab.kubernetes.errors import (
    StatusCause,
    bad_request,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from lamina_lab.kubernetes.quantities import RULE, parse

_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_POLICIES = ("Always", "OnFailure", "Never")
_PLAIN = ("cpu", "memory", "ephemeral-storage")
_NOT_EPHEMERAL = (
    *("ports", "resources", "resizePolicy", "restartPolicy", "lifecycle"),
    *("livenessProbe", "readinessProbe", "startupProbe"),
)
_UPDATE_RULE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_spec(spec: Object, at: str) -> list[StatusCause]:
    causes = []
    volumes = {volume.get("name") for volume in spec.get("volumes", ())}
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        found = spec.get(field, [])
        if field == "containers" and not found:
            causes.append(required(f"{at}.containers"))
        for index, container in enumerate(found):
            causes += _container(container, f"{at}.{field}[{index}]", volumes, names)
    for index, container in enumerate(spec.get("ephemeralContainers", [])):
        causes += _ephemeral(container, f"{at}.ephemeralContainers[{index}]", volumes, names)
    policy = spec.get("restartPolicy", "Always")
    if policy not in _POLICIES:
        causes.append(unsupported_value(f"{at}.restartPolicy", policy, _POLICIES))
    return causes


def template_spec(spec: Object, at: str) -> list[StatusCause]:
    """The spec of a template's pods."""
    return pod_spec(spec, at) + no_ephemeral(spec, at, "ephemeral containers not allowed in pod template")


def no_ephemeral(spec: Object, at: str, detail: str) -> list[StatusCause]:
    """They are only added to pods that exist."""
    return [forbidden_field(f"{at}.ephemeralContainers", detail)] if spec.get("ephemeralContainers") else []


def pod_update(pod: Object, old: Object) -> list[StatusCause]:
    """A pod's spec is immutable except for a few fields."""
    if _settled(pod["spec"]) != _settled(old["spec"]):
        return [forbidden_field("spec", _UPDATE_RULE)]
    kept = pod["spec"].get("tolerations") or []
    if any(toleration not in kept for toleration in old["spec"].get("tolerations") or []):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden_field("spec.tolerations", detail)]
    return []


def ephemeral_update(pod: Object, old: Object) -> list[StatusCause]:
    """Ephemeral containers can only be added."""
    present = {container["name"]: container for container in pod["spec"].get("ephemeralContainers") or []}
    causes = []
    for before in old["spec"].get("ephemeralContainers") or []:
        if present.get(before["name"]) != before:
            what = "changed" if before["name"] in present else "removed"
            detail = f'existing ephemeral containers "{before["name"]}" may not be {what}'
            causes.append(forbidden_field("spec.ephemeralContainers", detail))
    return causes


def _settled(spec: Object) -> Object:
    free = ("tolerations", "activeDeadlineSeconds", "schedulingGates", "containers", "initContainers")
    settled = {key: value for key, value in spec.items() if key not in free}
    for field in ("containers", "initContainers"):
        settled[field] = [{k: v for k, v in container.items() if k != "image"} for container in spec.get(field) or []]
    return settled


def _container(container: Object, at: str, volumes: set[Any], names: set[str]) -> list[StatusCause]:
    causes = []
    name = container.get("name", "")
    if not name:
        causes.append(required(f"{at}.name"))
    elif len(name) > 63 or not _LABEL.fullmatch(name):
        causes.append(invalid_value(f"{at}.name", name, _LABEL_RULE))
    elif name in names:
        causes.append(StatusCause(f"{at}.name", f'Duplicate value: "{name}"', "FieldValueDuplicate"))
    names.add(name)
    if not container.get("image"):
        causes.append(required(f"{at}.image"))
    for index, variable in enumerate(container.get("env", ())):
        if not variable.get("name"):
            causes.append(required(f"{at}.env[{index}].name"))
    for index, mount in enumerate(container.get("volumeMounts", ())):
        where = f"{at}.volumeMounts[{index}]"
        if mount.get("name") not in volumes:
            causes.append(StatusCause(f"{where}.name", f'Not found: "{mount.get("name", "")}"', "FieldValueNotFound"))
        if not mount.get("mountPath"):
            causes.append(required(f"{where}.mountPath"))
    return causes + _resources(container.get("resources", {}), f"{at}.resources")


def _ephemeral(container: Object, at: str, volumes: set[Any], names: set[str]) -> list[StatusCause]:
    """They have no resources, ports and probes, and may share the processes of a container of the pod."""
    target, others = container.get("targetContainerName", ""), set(names)
    causes = _container(container, at, volumes, names)
    for field in _NOT_EPHEMERAL:
        if container.get(field):
            causes.append(forbidden_field(f"{at}.{field}", "cannot be set for an Ephemeral Container"))
    if target and target not in others:
        causes.append(StatusCause(f"{at}.targetContainerName", f'Not found: "{target}"', "FieldValueNotFound"))
    return causes


def _resources(resources: Object, at: str) -> list[StatusCause]:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    causes = []
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, value in amounts.items():
            causes += _amount(name, value, f"{at}.{field}[{name}]")
    if not causes:
        for name in requests:
            causes += _pair(name, requests[name], limits.get(name), at)
    return causes


def _amount(name: str, value: Any, at: str) -> list[StatusCause]:
    number = parse(value)
    if number is None:
        raise bad_request(f"{at}: {RULE}")
    if not _plain(name) and "/" not in name:
        return [
            invalid_value(at, name, "must be a standard resource type or fully qualified"),
            invalid_value(at, name, "must be a standard resource for containers"),
        ]
    if number < 0:
        return [invalid_value(at, str(value), "must be greater than or equal to 0")]
    if not _plain(name) and number.denominator != 1:
        return [invalid_value(at, str(value), "must be an integer")]
    return []


def _pair(name: str, request: Any, limit: Any, at: str) -> list[StatusCause]:
    """Extended resources are never overcommitted: the limit must be set and equal the request."""
    asked, allowed = parse(request), parse(limit)
    if allowed is None:
        return [] if _plain(name) else [required(f"{at}.limits", "Limit must be set for non overcommitable resources")]
    if not _plain(name) and asked != allowed:
        return [invalid_value(f"{at}.requests", str(request), f"must be equal to {name} limit of {limit}")]
    if asked is not None and asked > allowed:
        return [invalid_value(f"{at}.requests", str(request), f"must be less than or equal to {name} limit of {limit}")]
    return []


def _plain(name: str) -> bool:
    return name in _PLAIN or name.startswith(("hugepages-", "kubernetes.io/"))
