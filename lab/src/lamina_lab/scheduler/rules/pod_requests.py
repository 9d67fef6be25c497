"""What a pod requests from a node, counted as kube-scheduler counts it."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.quantities import parse

Amounts = dict[str, Fraction]


def amounts(written: Mapping[str, Any] | None) -> Amounts:
    """Quantities as numbers. Invalid ones are left out; the API server refuses them anyway."""
    parsed = {name: parse(value) for name, value in (written or {}).items()}
    return {name: value for name, value in parsed.items() if value is not None}


def requests(pod: Mapping[str, Any]) -> Amounts:
    """Per resource, the larger of what runs together and what starts before it, plus the pod's overhead.

    Sidecars (init containers with restartPolicy Always) keep running: they add to the containers, and to every init
    container that starts after them.
    """
    spec = objects.spec(pod)
    running: Amounts = {}
    for container in spec.get("containers") or ():
        _add(running, _container(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        asked = _container(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, asked)
            _raise(peak, sidecars)
        else:
            together = dict(sidecars)
            _add(together, asked)
            _raise(peak, together)
    _add(running, sidecars)
    _raise(running, peak)
    _add(running, amounts(spec.get("overhead")))
    return running


def requests_any(pod: Mapping[str, Any], resources: Iterable[str]) -> bool:
    """Whether any container names one of the resources in its requests or limits."""
    wanted = set(resources)
    for container in _containers(pod):
        asked = container.get("resources") or {}
        if wanted & {*(asked.get("requests") or {}), *(asked.get("limits") or {})}:
            return True
    return False


def host_ports(pod: Mapping[str, Any]) -> set[tuple[str, int]]:
    """(protocol, port) pairs that the pod uses on its node."""
    return {
        (port.get("protocol") or "TCP", int(port["hostPort"]))
        for container in _containers(pod)
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }


def _containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    spec = objects.spec(pod)
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()


def _container(container: Mapping[str, Any]) -> Amounts:
    resources = container.get("resources") or {}
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _add(total: Amounts, more: Mapping[str, Fraction]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, Fraction(0)) + value


def _raise(total: Amounts, floor: Mapping[str, Fraction]) -> None:
    for name, value in floor.items():
        total[name] = max(total.get(name, Fraction(0)), value)
