"""Parses pods, those that are alike only once: most pods of a cluster come from few templates.

What a pod requests follows from a part of it. Pods with the same part share what was found about the first of them.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from lamina.configuration import Config
from lamina.controller.compatibility import MODE
from lamina.core.host_size import HostSize
from lamina.core.requests import PodRequest
from lamina.dialects import pod_annotations
from lamina.ledger.pods import ParsedPod, parse_pod
from lamina.ports.kube import Object

MAX_PARTS = 1000
"""The one used longest ago is dropped first."""
_MAX_PART = 8 * 2**10
"""Bytes as JSON, so that all of them together stay small whatever tenants write."""
_MAX_CONTAINERS = 100
_CONTAINER = ("name", "resources", "restartPolicy", "env")
_SPEC = ("schedulerName", "resources", "overhead")


class _Found(NamedTuple):
    request: PodRequest | None
    problem: str
    host_size: HostSize
    ticket_holders: frozenset[str]


class PodParser:
    """What was found under one configuration; another configuration starts from nothing."""

    def __init__(self) -> None:
        self._config: Config | None = None
        self._found: OrderedDict[bytes, _Found] = OrderedDict()
        self._unread = frozenset({*pod_annotations(), MODE})

    @property
    def kept(self) -> int:
        """Of how many parts it is kept what was found."""
        return len(self._found)

    def parse(self, obj: Object, config: Config) -> ParsedPod:
        """The pod with its request, as `parse_pod` finds it."""
        part = self._part(obj)
        if part is None or len(part) > _MAX_PART:
            return parse_pod(obj, config)
        if config is not self._config:
            self._config = config
            self._found.clear()
        found = self._found.pop(part, None)
        if found is None:
            pod = parse_pod(obj, config)
            found = _Found(pod.request, pod.problem, pod.host_size, pod.ticket_holders)
            if len(self._found) >= MAX_PARTS:
                self._found.popitem(last=False)
        self._found[part] = found
        return ParsedPod.of_parts(obj, config, *found)

    def _part(self, obj: Object) -> bytes | None:
        """All that decides what is found, as JSON; None for a large pod or one of another form."""
        try:
            metadata, spec = obj.get("metadata") or {}, obj["spec"]
            containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
            if len(containers) > _MAX_CONTAINERS:
                return None
            annotations = metadata.get("annotations") or {}
            parts = (
                metadata.get("namespace"),
                {key: value for key, value in annotations.items() if key not in self._unread},
                metadata.get("labels"),
                [spec.get(field) for field in _SPEC],
                len(spec["containers"]),
                [_container(each) for each in containers],
                (obj.get("status") or {}).get("extendedResourceClaimStatus"),
            )
            return msgspec.json.encode(parts)
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
            return None


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    return {field: container[field] for field in _CONTAINER if field in container}
