"""What admission fills into a new pod: the defaults that the vocabulary promises, as additions to its specification."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lamina.dialects.config import Config
from lamina.dialects.hami import Container, asks, containers_of, parse
from lamina.dialects.resources import resource_names
from lamina.errors import BadInput
from lamina.model.requests import ContainerRequest, PodRequest

SCHEDULERS = ("default-scheduler", "hami-scheduler", "4pd-scheduler", "lamina-scheduler")
_ENV = "NVIDIA_VISIBLE_DEVICES"


class Fill(NamedTuple):
    """One addition: a JSON pointer into the pod and the value that belongs there (an `add` of JSON Patch)."""

    pointer: str
    value: Any


def schedulers(config: Config) -> tuple[str, ...]:
    """Names in `spec.schedulerName` under which we place pods."""
    return tuple(dict.fromkeys((*SCHEDULERS, config.hami.scheduler_name or SCHEDULERS[0])))


def defaults(pod: Mapping[str, Any], config: Config) -> tuple[Fill, ...]:
    """What is to be added to a new pod, in the order in which it can be applied.

    Empty where the pod belongs to another scheduler; where it asks no GPU, it can only be told to see none. Raises
    BadInput as `parse` does, and for a pod that somebody has assigned to a node already: nobody would have counted its
    share.
    """
    request = parse(pod, config)
    spec = pod.get("spec") or {}
    scheduler = spec.get("schedulerName") or SCHEDULERS[0]
    if scheduler not in schedulers(config):
        return ()
    if request is None:
        hidden = containers_of(pod) if config.hami.overwrite_env else ()
        return tuple(fill for container in hidden for fill in _hide_gpus(container))
    if spec.get("nodeName"):
        raise BadInput(f"the pod is assigned to node {spec['nodeName']} already; remove nodeName so that it is placed")
    fills = list(_pod_fills(spec, scheduler, config))
    requests = {container.container: container for container in request.containers}
    for container in containers_of(pod):
        if asks(container, resource_names(config)):
            fills += _container_fills(container, requests[container.name], config)
        elif config.hami.overwrite_env:
            fills += _hide_gpus(container)
    return tuple(fills)


def unseen_by_admission(pod: Mapping[str, Any], request: PodRequest, config: Config) -> str:
    """The sentence that refuses a pod which admission has not filled in, or nothing.

    Kubelet hands out GPUs by the count alone: a container that names a share without one would hold it on paper and
    start without any GPU.
    """
    count, asking = resource_names(config).count, {container.container for container in request.containers}
    for container in containers_of(pod):
        if container.name in asking and count not in container.asked:
            return f"container {container.name} names no {count}, which admission fills in; it has not seen this pod"
    return ""


def _pod_fills(spec: Mapping[str, Any], scheduler: str, config: Config) -> Iterator[Fill]:
    if scheduler == SCHEDULERS[0] and config.hami.scheduler_name not in ("", spec.get("schedulerName")):
        yield Fill("/spec/schedulerName", config.hami.scheduler_name)
    if config.hami.runtime_class_name and spec.get("runtimeClassName") is None:
        yield Fill("/spec/runtimeClassName", config.hami.runtime_class_name)


def _container_fills(container: Container, request: ContainerRequest, config: Config) -> Iterator[Fill]:
    """The count where only the rest is named, and the cores of a whole GPU."""
    names = resource_names(config)
    missing = {}
    if names.count not in container.asked:
        missing[names.count] = str(request.count)
    if request.whole and names.cores not in container.asked:
        missing[names.cores] = str(request.cores)
    if not missing:
        return
    limits = f"{container.pointer}/resources/limits"
    if not container.spec["resources"].get("limits"):
        yield Fill(limits, {})
    for name, value in missing.items():
        yield Fill(f"{limits}/{name.replace('~', '~0').replace('/', '~1')}", value)


def _hide_gpus(container: Container) -> Iterator[Fill]:
    """The last of several variables of one name counts, so an earlier value need not be removed."""
    hidden = {"name": _ENV, "value": "none"}
    env = container.spec.get("env") or []
    if not env:
        yield Fill(f"{container.pointer}/env", [hidden])
    elif env[-1] != hidden:
        yield Fill(f"{container.pointer}/env/-", hidden)
