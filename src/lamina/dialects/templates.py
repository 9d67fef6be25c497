"""The pod templates of workloads: what admission changes in them so that the API server accepts them."""

from collections.abc import Mapping
from typing import Any

from lamina.core.config import Config
from lamina.core.requests import PodRequest
from lamina.dialects.admission import places
from lamina.dialects.containers import read_containers
from lamina.dialects.parser import parse
from lamina.dialects.patches import PatchOperation
from lamina.dialects.registry import name_index
from lamina.errors import BadInput

WORKLOADS = {
    "": ("replicationcontrollers",),
    "apps": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "batch": ("cronjobs", "jobs"),
}
"""The resources that have templates of pods, by group."""


def fill_template(workload: Mapping[str, Any], config: Config) -> tuple[PatchOperation, ...]:
    """What has to change in a workload, in the order in which it can be applied.

    Empty where its pods are another scheduler's. Raises BadInput as `parse` does where something has to be added.
    """
    pointer, template = find_template(workload)
    if not places(template.get("spec") or {}, config):
        return ()
    index, containers = name_index(config), read_containers(template)
    changes = [
        change for dialect in index.dialects for change in dialect.fill_template(containers, index.names[dialect.name])
    ]
    if any(change.op == "add" for change in changes):
        parse(template, config)
    return tuple(change._replace(pointer=pointer + change.pointer) for change in changes)


def template_condition(amounts: str, config: Config) -> str:
    """CEL: whether `fill_template` has something to do for the limits or requests `amounts` of a container."""
    index = name_index(config)
    conditions = (one.template_condition(amounts, index.names[one.name]) for one in index.dialects)
    return " || ".join(condition for condition in conditions if condition) or "false"


def template_warnings(workload: Mapping[str, Any], namespace: str, config: Config) -> tuple[str, ...]:
    """What the user should know about the pods of a workload in this namespace: that they will be refused, and why."""
    try:
        request = _request(workload, namespace, config)
    except BadInput as problem:
        return (f"its pods will be refused: {problem}",)
    return () if request is None else request.warnings


def template_refusal(workload: Mapping[str, Any], namespace: str, config: Config) -> str:
    """Why the pods of a workload in this namespace are refused, or nothing."""
    try:
        _request(workload, namespace, config)
    except BadInput as problem:
        return str(problem)
    return ""


def _request(workload: Mapping[str, Any], namespace: str, config: Config) -> PodRequest | None:
    """What its pods request of Lamina's schedulers. Raises BadInput."""
    _, template = find_template(workload)
    if not places(template.get("spec") or {}, config):
        return None
    return parse({**template, "metadata": {**(template.get("metadata") or {}), "namespace": namespace}}, config)


def find_template(workload: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The pointer of the pod template, and the template."""
    spec, pointer = workload.get("spec") or {}, "/spec"
    if spec.get("jobTemplate"):
        spec, pointer = spec["jobTemplate"].get("spec") or {}, f"{pointer}/jobTemplate/spec"
    return f"{pointer}/template", spec.get("template") or {}
