"""A container's environment and command, from its pod's spec and its devices. Pure.

Later layers win: the node's own variables, the plugin's answer, the pod's variables, then what the lab and CDI set
for GPUs. A manifest can therefore not grant itself a GPU by a variable, just as it cannot with device nodes.
"""

import base64
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from lamina_lab.kubernetes.quantities import parse

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
SEARCH_PATHS = ("LD_LIBRARY_PATH", "LD_PRELOAD")
"""Variables that are lists: the node's entries come first and do not replace the pod's."""

_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class ConfigError(Exception):
    """The environment cannot be built; the message is kubelet's."""


class EnvironmentSource(Struct, frozen=True):
    """A ConfigMap or Secret that a container's environment comes from."""

    kind: str
    name: str
    optional: bool


class DownwardFacts(Struct, frozen=True):
    """What the downward API says of the node: addresses, and amounts for containers without limits of their own."""

    node_ip: str
    pod_ip: str
    allocatable: Mapping[str, str]


def sources(container: Mapping[str, Any]) -> list[EnvironmentSource]:
    """Every object that must be read before `own_variables` can be called."""
    found = []
    for entry in container.get("envFrom") or ():
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if ref := entry.get(field):
                found.append(EnvironmentSource(kind, ref["name"], bool(ref.get("optional"))))
    for entry in container.get("env") or ():
        origin = entry.get("valueFrom") or {}
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            if ref := origin.get(field):
                found.append(EnvironmentSource(kind, ref["name"], bool(ref.get("optional"))))
    return list(dict.fromkeys(found))


Contents = Mapping[tuple[str, str], Mapping[str, str]]
"""Texts of the objects that exist, by kind and name."""


def texts(found: Mapping[str, Any]) -> dict[str, str]:
    """The texts in a ConfigMap or Secret."""
    if found.get("kind") == "Secret":
        data = found.get("data") or {}
        return {name: base64.b64decode(value).decode(errors="replace") for name, value in data.items()}
    return dict(found.get("data") or {})


def own_variables(
    pod: Mapping[str, Any], container: Mapping[str, Any], contents: Contents, facts: DownwardFacts
) -> dict[str, str]:
    """The variables of `envFrom` and `env`. Raises ConfigError."""
    result: dict[str, str] = {}
    for entry in container.get("envFrom") or ():
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if ref := entry.get(field):
                texts = contents.get((kind, ref["name"]), {})
                result |= {entry.get("prefix", "") + name: text for name, text in texts.items()}
    for entry in container.get("env") or ():
        origin = entry.get("valueFrom")
        if origin is None:
            result[entry["name"]] = expand(entry.get("value", ""), result)
            continue
        value = _value_from(origin, pod, container, contents, facts)
        if value is not None:
            result[entry["name"]] = value
    return result


def combined(
    base: Mapping[str, str],
    plugin: Mapping[str, str],
    own: Mapping[str, str],
    node: Mapping[str, str],
    devices: Mapping[str, str] | None,
) -> dict[str, str]:
    """The whole environment. `devices` are CDI's variables; None, without a CDI device, hides all GPUs."""
    result = {**base, **plugin, **own}
    for layer in (node, {VISIBLE: "void"} if devices is None else devices):
        for name, value in layer.items():
            joined = name in SEARCH_PATHS and result.get(name)
            result[name] = f"{value}:{result[name]}" if joined else value
    return result


def command_of(container: Mapping[str, Any], variables: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The container's command and arguments, with variables expanded."""
    command = [expand(word, variables) for word in container.get("command") or ()]
    return command, [expand(word, variables) for word in container.get("args") or ()]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` if NAME is known; `$$` is a dollar sign."""

    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(replace, text)


def _value_from(
    origin: Mapping[str, Any],
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    contents: Contents,
    facts: DownwardFacts,
) -> str | None:
    if ref := origin.get("fieldRef"):
        return _field(pod, ref["fieldPath"], facts)
    if ref := origin.get("resourceFieldRef"):
        return _amount(pod, container, ref, facts)
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if ref := origin.get(field):
            texts = contents.get((kind, ref["name"]), {})
            if ref["key"] not in texts and not ref.get("optional"):
                where = f"{pod['metadata']['namespace']}/{ref['name']}"
                raise ConfigError(f"couldn't find key {ref['key']} in {kind} {where}")
            return texts.get(ref["key"])
    raise ConfigError("the valueFrom of a variable has no source that this kubelet supports")


def _field(pod: Mapping[str, Any], path: str, facts: DownwardFacts) -> str:
    metadata, spec = pod["metadata"], pod["spec"]
    if match := _SUBSCRIPT.fullmatch(path):
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    known = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        "status.podIP": facts.pod_ip,
        "status.podIPs": facts.pod_ip,
        "status.hostIP": facts.node_ip,
        "status.hostIPs": facts.node_ip,
    }
    if path not in known:
        raise ConfigError(f"unsupported fieldPath: {path}")
    return str(known[path])


def _amount(pod: Mapping[str, Any], container: Mapping[str, Any], ref: Mapping[str, Any], facts: DownwardFacts) -> str:
    wanted = ref.get("containerName") or container["name"]
    owner = next((entry for entry in _all_containers(pod) if entry["name"] == wanted), None)
    if owner is None:
        raise ConfigError(f"container {wanted} not found")
    section, _, resource = ref["resource"].partition(".")
    amounts = (owner.get("resources") or {}).get(section) or {}
    # Without a limit, a container may use everything the node has.
    text = amounts.get(resource) or (facts.allocatable.get(resource) if section == "limits" else None) or "0"
    amount, divisor = parse(text), parse(ref.get("divisor") or 1) or 1
    if amount is None:
        raise ConfigError(f"unsupported container resource: {ref['resource']}")
    return str(math.ceil(amount / divisor))


def _all_containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from pod["spec"].get("initContainers") or ()
    yield from pod["spec"].get("containers") or ()


def assignments(pairs: Iterable[str], option: str) -> dict[str, str]:
    """`KEY=VALUE` arguments as a mapping. Raises ValueError naming the option."""
    result = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ValueError(f"{option} {pair!r}: must be KEY=VALUE")
        result[name] = value
    return result
