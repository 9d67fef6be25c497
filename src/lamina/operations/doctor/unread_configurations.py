"""ConfigMaps of Volcano and HAMi that stay in a cluster: Lamina does not read them. Pure.

One that says what the configuration in force says too is not worth a word, so the finding ends with the conversion.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from lamina.configuration import DEFAULT, Config
from lamina.configuration.importers.published import convert
from lamina.errors import BadInput
from lamina.operations.doctor.finding import Finding, State
from lamina.ports.kube import Object

NAMES = (
    ("volcano-system", "volcano-scheduler-configmap"),
    ("kube-system", "volcano-vgpu-device-config"),
    ("kube-system", "volcano-vgpu-node-config"),
    ("kube-system", "hami-scheduler-device"),
)
"""Namespaces and names with which these systems' documents install them."""


def unread_configurations(config: Config, config_maps: Iterable[Object]) -> Iterator[Finding]:
    """A finding for each of `config_maps` that says more than the configuration in force."""
    for found in config_maps:
        namespace, name = found["metadata"]["namespace"], found["metadata"]["name"]
        text = msgspec.json.encode({"kind": "ConfigMap", "data": found.get("data") or {}}).decode()
        try:
            said = convert(text, f"ConfigMap {namespace}/{name}").config
        except BadInput as problem:
            missing = [f"it cannot be converted: {problem}"]
        else:
            missing = list(_missing(said, DEFAULT, config))
        if missing:
            yield Finding(
                "configuration of others",
                State.WARNING,
                f"ConfigMap {namespace}/{name} is not read: {', '.join(missing)}",
                f"kubectl -n {namespace} get configmap {name} -o yaml > theirs.yaml; "
                "lamina config convert theirs.yaml; put the result into the configuration, or delete the ConfigMap",
            )


def _missing(said: Any, default: Any, in_force: Any, path: str = "") -> Iterator[str]:
    """The fields that are set there and have another value in force."""
    for field in msgspec.structs.fields(said):
        values = [getattr(config, field.name) for config in (said, default, in_force)]
        here = f"{path}.{field.encode_name}".lstrip(".")
        if isinstance(values[0], msgspec.Struct) and isinstance(values[2], msgspec.Struct):
            yield from _missing(values[0], values[1], values[2], here)
        elif values[0] not in (values[1], values[2]):
            yield here
