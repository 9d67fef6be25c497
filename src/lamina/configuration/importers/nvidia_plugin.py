"""A file of NVIDIA's device plugin as part of a configuration, and what it does, in sentences."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from lamina.configuration import nvidia
from lamina.configuration.nvidia.choice import LABEL, NAMED_DEFAULT
from lamina.core.sharing import Strategy
from lamina.errors import BadInput

IGNORED = {
    "flags.failOnInitError": "agents on nodes without a driver wait for one",
    "flags.plugin.nvidiaCTKPath": "agents write CDI specs without nvidia-ctk",
    "flags.plugin.containerDriverRoot": "agents look for the driver where `lamina install` says, by agent.driverDir",
    "flags.plugin.cdiAnnotationPrefix": "agents use cdi.k8s.io/, where container runtimes look",
    "flags.deviceDiscoveryStrategy": "GPUs are found by NVML",
    "flags.gfd.oneshot": "labels are kept as long as the agent runs",
    "flags.gfd.sleepInterval": "labels are written when something changes",
    "flags.gfd.outputFile": "labels are written on the node itself, not to a file for node feature discovery",
}
"""Keys that are read and checked, but set nothing, with the reason."""
_WORDS = {Strategy.TIME_SLICING: "time-slicing", Strategy.MPS: "MPS"}


def is_meant(document: Mapping[str, Any]) -> bool:
    return re.fullmatch(r"v\d\w*", str(document.get("version"))) is not None


def read(document: Mapping[str, Any], name: str, where: str) -> tuple[dict[str, Any], Iterator[str]]:
    """A configuration with this file under its name. Raises BadInput as the agent refuses it."""
    try:
        text = msgspec.json.encode(document).decode()
    except TypeError as problem:
        raise BadInput(f"{where}: a file with version: v1 must only have strings as keys") from problem
    file = nvidia.load(text, where)
    return {"nativeDevices": {"configs": {name: dict(document)}}}, _effects(file, document, name)


def named_instead(meta: Mapping[str, Any]) -> str:
    """That the ConfigMap with this metadata may stay where it is."""
    name, namespace = meta.get("name"), meta.get("namespace") or "default"
    return (
        f"agents can read the ConfigMap itself, by nativeDevices.configMap: {{name: {name}, namespace: {namespace}}} "
        f"and agent.nvidiaNamespace={namespace} when installing"
    )


def _effects(file: nvidia.NvidiaConfig, document: Mapping[str, Any], name: str) -> Iterator[str]:
    if name == NAMED_DEFAULT:
        yield f"{name}: applies to all nodes but those whose label {LABEL} names another file"
    else:
        yield f"{name}: applies to nodes whose label {LABEL} is {name}, and to those without it if it is the only file"
    yield f"{name}: the GPUs of these nodes are native devices, without shares"
    for each in file.sharing.resources:
        at_most = ", one at most for a container" if file.sharing.one_at_most else ""
        yield (
            f"{name}: each {each.name} is offered as {each.replicas} replicas by {_WORDS[file.sharing.strategy]}, as "
            f"{each.offered}{at_most}"
        )
    if not file.sharing.resources:
        yield f"{name}: GPUs are offered whole, because it has no sharing"
    if file.mig_strategy != "none":
        yield f"{name}: MIG devices are offered by the strategy {file.mig_strategy}"
    yield from (f"{name}: {warning}" for warning in file.warnings)
    yield from (
        f"{name}: {path} sets nothing: {why}" for path, why in IGNORED.items() if _at(document, path) is not None
    )


def _at(document: Any, path: str) -> Any:
    for key in path.split("."):
        document = document.get(key) if isinstance(document, dict) else None
    return document
