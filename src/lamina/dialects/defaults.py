"""What admission fills into a new pod: the defaults that the vocabulary promises, as additions to its specification."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lamina.dialects import cce
from lamina.dialects.annotations import COUNTS
from lamina.dialects.config import Config
from lamina.dialects.containers import Container, containers_of
from lamina.dialects.parsing import parse, spoken
from lamina.dialects.vocabularies import Vocabulary, hami
from lamina.errors import BadInput
from lamina.model.requests import ContainerRequest, PodRequest

_DEFAULT_SCHEDULER = "default-scheduler"
_ENV = "NVIDIA_VISIBLE_DEVICES"


class Fill(NamedTuple):
    """One change: a JSON pointer and the value that belongs there, or `remove` for what does not."""

    pointer: str
    value: Any = None
    op: str = "add"

    @property
    def operation(self) -> dict[str, Any]:
        """As an operation of JSON Patch."""
        changed = {"op": self.op, "path": self.pointer}
        return changed if self.op == "remove" else {**changed, "value": self.value}


def schedulers(config: Config) -> tuple[str, ...]:
    """Names in `spec.schedulerName` under which we place pods."""
    return tuple(dict.fromkeys((*config.schedulers, config.hami.scheduler_name or _DEFAULT_SCHEDULER)))


def defaults(pod: Mapping[str, Any], config: Config) -> tuple[Fill, ...]:
    """What is to be added to a new pod, in the order in which it can be applied.

    Empty where the pod belongs to another scheduler; where it asks no GPU, it can only be told to see none. Raises
    BadInput as `parse` does, and for a pod that somebody has assigned to a node already: nobody would have counted its
    share.
    """
    request = parse(pod, config)
    spec = pod.get("spec") or {}
    scheduler = spec.get("schedulerName") or _DEFAULT_SCHEDULER
    if scheduler not in schedulers(config):
        return ()
    containers = containers_of(pod)
    vocabulary = spoken(containers, config)
    if request is None or vocabulary is None:
        hidden = containers if config.hami.overwrite_env else ()
        return tuple(fill for container in hidden for fill in _hide_gpus(container))
    if spec.get("nodeName"):
        raise BadInput(f"the pod is assigned to node {spec['nodeName']} already; remove nodeName so that it is placed")
    fills = list(_pod_fills(spec, scheduler, vocabulary, config))
    requests = {container.container: container for container in request.containers}
    if request.plain and any(_lacks_cores(container, requests, vocabulary) for container in containers):
        fills += _counts(pod)
    for container in containers:
        if container.name in requests:
            fills += _container_fills(container, requests[container.name], vocabulary)
        elif config.hami.overwrite_env:
            fills += _hide_gpus(container)
    return tuple(fills)


def unseen_by_admission(pod: Mapping[str, Any], request: PodRequest, config: Config) -> str:
    """The sentence that refuses a pod which admission has not filled in, or nothing.

    Kubelet hands out GPUs by one resource alone: a container that names a share without it would hold it on paper and
    start without any GPU.
    """
    containers, asking = containers_of(pod), {container.container for container in request.containers}
    vocabulary = spoken(containers, config)
    for container in containers:
        if not vocabulary or container.name not in asking:
            continue
        ticket = vocabulary.ticket
        if ticket not in container.asked or cce.PERCENTAGE in container.asked:
            return f"container {container.name} names no {ticket}, which admission fills in; it has not seen this pod"
    return ""


def _pod_fills(spec: Mapping[str, Any], scheduler: str, vocabulary: Vocabulary, config: Config) -> Iterator[Fill]:
    named = config.hami.scheduler_name if vocabulary == hami(config) else ""
    if scheduler == _DEFAULT_SCHEDULER and named not in ("", spec.get("schedulerName")):
        yield Fill("/spec/schedulerName", named)
    if config.hami.runtime_class_name and spec.get("runtimeClassName") is None:
        yield Fill("/spec/runtimeClassName", config.hami.runtime_class_name)


def _lacks_cores(container: Container, requests: Mapping[str, ContainerRequest], names: Vocabulary) -> bool:
    """Whether the container asks a whole GPU by its count alone."""
    asked = requests.get(container.name)
    return asked is not None and asked.whole and names.cores not in container.asked


def _counts(pod: Mapping[str, Any]) -> Iterator[Fill]:
    """The mark that the pod only counts GPUs: cores that are filled in could not be told from cores that are meant."""
    if not (pod.get("metadata") or {}).get("annotations"):
        yield Fill("/metadata/annotations", {})
    yield Fill(f"/metadata/annotations/{escaped(COUNTS)}", "true")


def _container_fills(container: Container, request: ContainerRequest, names: Vocabulary) -> Iterator[Fill]:
    """The count where only the rest is named or a fraction of one, and the cores of a whole GPU."""
    missing: dict[str, str] = {}
    fraction = cce.fraction(container, names)
    if fraction is not None:
        missing = {names.count: "1", names.memory_percentage: str(fraction)}
    elif names.ticket not in container.asked:
        missing[names.ticket] = str(request.count)
    if _lacks_cores(container, {container.name: request}, names):
        missing[names.cores] = str(request.cores)
    if not missing:
        return
    resources = container.spec["resources"]
    limits = f"{container.pointer}/resources/limits"
    if not resources.get("limits"):
        yield Fill(limits, {})
    for name, value in missing.items():
        yield Fill(f"{limits}/{escaped(name)}", value)
    if fraction is not None and names.count in (resources.get("requests") or {}):
        yield Fill(f"{container.pointer}/resources/requests/{escaped(names.count)}", "1")
    if fraction is not None:
        yield from without_percentage(container)


def without_percentage(container: Container) -> Iterator[Fill]:
    """Take away what stands for a fraction in a template."""
    for field in ("limits", "requests"):
        if cce.PERCENTAGE in (container.spec["resources"].get(field) or {}):
            yield Fill(f"{container.pointer}/resources/{field}/{escaped(cce.PERCENTAGE)}", op="remove")


def escaped(name: str) -> str:
    """As a part of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def _hide_gpus(container: Container) -> Iterator[Fill]:
    """The last of several variables of one name counts, so an earlier value need not be removed."""
    hidden = {"name": _ENV, "value": "none"}
    env = container.spec.get("env") or []
    if not env:
        yield Fill(f"{container.pointer}/env", [hidden])
    elif env[-1] != hidden:
        yield Fill(f"{container.pointer}/env/-", hidden)
