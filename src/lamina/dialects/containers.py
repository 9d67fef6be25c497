"""The containers of a pod, and how amounts are read from them, whatever the vocabulary."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from lamina.errors import BadInput
from lamina.model.kube_quantity import parse_quantity


class Container(NamedTuple):
    """A container of a pod: where it stands, what it is, what it asks by resource name."""

    pointer: str
    spec: Mapping[str, Any]
    asked: Mapping[str, object]
    init: bool
    sidecar: bool

    @property
    def name(self) -> str:
        return str(self.spec.get("name", ""))

    @property
    def where(self) -> str:
        """How errors name it."""
        return f"container {self.name}"

    def names_any(self, resources: Iterable[str]) -> bool:
        """Whether it asks any of these resources."""
        return any(name in self.asked for name in resources)


def containers_of(pod: Mapping[str, Any]) -> tuple[Container, ...]:
    """The containers in the order in which Kubernetes starts them. Raises BadInput for resources of no known form."""
    return tuple(_containers(pod.get("spec") or {}))


def _containers(spec: Mapping[str, Any]) -> Iterator[Container]:
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            init = field == "initContainers"
            sidecar = init and container.get("restartPolicy") == "Always"
            yield Container(f"/spec/{field}/{index}", container, _asked_by(container), init, sidecar)


def _asked_by(container: Mapping[str, object]) -> dict[str, object]:
    """What the container asks, by resource name: a limit goes before a request, as HAMi reads them."""
    resources = container.get("resources") or {}
    if not isinstance(resources, Mapping):
        raise BadInput(f"container {container.get('name')}: resources is {resources!r}; allowed is limits and requests")
    asked: dict[str, object] = {}
    for field in ("requests", "limits"):
        named = resources.get(field) or {}
        if not isinstance(named, Mapping):
            raise BadInput(f"container {container.get('name')}: {field} is {named!r}; allowed is names with amounts")
        asked.update(named)
    return asked


def whole_number(container: Container, name: str, least: int, most: int | None, *, step: int = 1) -> int | None:
    """The whole number that the container gives for `name`, or None where it gives none. Raises BadInput."""
    if name not in container.asked:
        return None
    written = container.asked[name]
    quantity = parse_quantity(written, where=f"{container.where}: {name}")
    number = quantity.whole
    allowed = "a whole number" if step == 1 else f"a multiple of {step}"
    allowed += f" from {least}" if most is None else f" from {least} to {most}"
    if number is None or number < least or (most is not None and number > most) or number % step:
        raise BadInput(f"{container.where}: {name} is {written!r}; allowed is {allowed}")
    if quantity.binary:
        raise BadInput(
            f"{container.where}: {name} is {written!r}, a count in units of powers of 1024; allowed is {allowed}"
        )
    return number


def is_privileged(container: Container) -> bool:
    security = container.spec.get("securityContext")
    return isinstance(security, Mapping) and security.get("privileged") is True


def sees_all(container: Container) -> str:
    """The sentence that refuses a privileged container."""
    return f"{container.where} is privileged and would see every GPU of its node; a share cannot be held there"


def check_not_privileged(container: Container) -> None:
    """Raises BadInput for a container that sees all devices of its node, whatever it was granted."""
    if is_privileged(container):
        raise BadInput(sees_all(container))


def check_limits_equal_requests(container: Container, names: Iterable[str]) -> None:
    """Raises BadInput where one of these resources has a limit and another request."""
    resources = container.spec.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name in names:
        if name in limits and name in requests:
            here = f"{container.where}: {name}"
            if parse_quantity(limits[name], where=here).value != parse_quantity(requests[name], where=here).value:
                raise BadInput(f"{here} has the limit {limits[name]} and the request {requests[name]}; make them equal")
