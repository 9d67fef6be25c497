"""Fractions of a GPU in the templates of workloads, which the API server refuses as soon as admission is done.

    nvidia.com/gpu: 0.1   ->   nvidia.com/gpu: 0, lamina.dev/gpu-percentage: 10

Nobody writes the form on the right by hand, and each of its two words tells whether the other is still meant. So a
template that was changed later is understood without its history: whoever asks a whole number of GPUs next, or none,
leaves the percentage behind, which then goes. In a pod of the template it becomes what a fraction in a pod becomes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lamina.dialects.cce import PERCENTAGE, fraction
from lamina.dialects.config import Config
from lamina.dialects.containers import Container, containers_of
from lamina.dialects.defaults import Fill, escaped, schedulers, without_percentage
from lamina.dialects.parsing import parse
from lamina.dialects.vocabularies import Vocabulary, hami
from lamina.model.kube_quantity import parse_quantity

WORKLOADS = {
    "": ("replicationcontrollers",),
    "apps": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "batch": ("cronjobs", "jobs"),
}
"""The resources that have templates of pods, by group."""


def template_fills(workload: Mapping[str, Any], config: Config) -> tuple[Fill, ...]:
    """What has to change in a workload, in the order in which it can be applied.

    Empty where its pods are another scheduler's. Raises BadInput as `parse` does where a container asks a fraction.
    """
    at, template = _template(workload)
    spec = template.get("spec") or {}
    if (spec.get("schedulerName") or "default-scheduler") not in schedulers(config):
        return ()
    names, containers = hami(config), containers_of(template)
    if any(_count(container, names) % 1 for container in containers):
        parse(template, config)
    fills = (fill for container in containers for fill in _container_fills(container, names))
    return tuple(fill._replace(pointer=at + fill.pointer) for fill in fills)


def _template(workload: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Where the template of the pods is, and the template."""
    spec, at = workload.get("spec") or {}, "/spec"
    if "jobTemplate" in spec:
        spec, at = spec["jobTemplate"].get("spec") or {}, f"{at}/jobTemplate/spec"
    return f"{at}/template", spec.get("template") or {}


def _count(container: Container, names: Vocabulary) -> Any:
    """How many GPUs the container asks; 0 where it names none."""
    written = container.asked.get(names.count, 0)
    return parse_quantity(written, where=f"{container.where}: {names.count}").value


def _container_fills(container: Container, names: Vocabulary) -> Iterator[Fill]:
    resources = f"{container.pointer}/resources"
    if _count(container, names) % 1:
        if not container.spec["resources"].get("limits"):
            yield Fill(f"{resources}/limits", {})
        yield Fill(f"{resources}/limits/{escaped(names.count)}", "0")
        yield Fill(f"{resources}/limits/{escaped(PERCENTAGE)}", str(fraction(container, names)))
        if names.count in (container.spec["resources"].get("requests") or {}):
            yield Fill(f"{resources}/requests/{escaped(names.count)}", "0")
    elif names.count not in container.asked or _count(container, names) != 0:
        yield from without_percentage(container)
