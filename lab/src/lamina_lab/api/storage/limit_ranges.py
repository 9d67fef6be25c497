"""LimitRanges: the requests and limits that containers of new pods get, and what they may be.

Defaults are set before webhooks see the pod. Bounds hold for what is stored, so they are checked after webhooks, with
the sentences of Kubernetes.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from lamina.ports.kube import Object
from lamina_lab.api.schema.resources import Catalog
from lamina_lab.api.storage.store import Store
from lamina_lab.kubernetes.errors import forbidden
from lamina_lab.kubernetes.quantities import canonical, parse

_KINDS = {"containers": "container", "initContainers": "init container"}
_ANNOTATION = "kubernetes.io/limit-ranger"
Amounts = Mapping[str, Any]


def fill(store: Store, catalog: Catalog, pod: Object) -> None:
    """Set what the containers of a new pod lack, in place. An annotation says what was set."""
    for item in _items(store, catalog, pod):
        if item["type"] != "Container":
            continue
        said = []
        for field, kind in _KINDS.items():
            for container in pod["spec"].get(field) or ():
                resources = container.setdefault("resources", {})
                for part, word in (("defaultRequest", "request"), ("default", "limit")):
                    missing = _missing(item.get(part) or {}, resources, f"{word}s")
                    if missing:
                        said.append(f"{', '.join(missing)} {word} for {kind} {container.get('name', '')}")
        if said:
            notes = pod["metadata"].setdefault("annotations", {})
            notes[_ANNOTATION] = f"LimitRanger plugin set: {'; '.join(said)}"


def check(store: Store, catalog: Catalog, pod: Object) -> None:
    """Raises 403 with every bound that the pod is out of."""
    refused = [
        sentence
        for item in _items(store, catalog, pod)
        for requests, limits in _bounded(item["type"], pod["spec"])
        for sentence in _broken(item, requests, limits)
    ]
    if refused:
        why = refused[0] if len(refused) == 1 else f"[{', '.join(dict.fromkeys(refused))}]"
        raise forbidden("pods", "", pod["metadata"].get("name", ""), why)


def _items(store: Store, catalog: Catalog, pod: Object) -> Iterator[Object]:
    for version in store.list(catalog.named("limitranges"), pod["metadata"].get("namespace", "")):
        yield from (version.obj.get("spec") or {}).get("limits") or ()


def _missing(defaults: Amounts, resources: Object, field: str) -> list[str]:
    """Set the defaults that the container lacks, and return their names."""
    own = resources.get(field) or {}
    missing = sorted(name for name in defaults if name not in own)
    if missing:
        resources[field] = {**own, **{name: defaults[name] for name in missing}}
    return missing


def _bounded(kind: str, spec: Object) -> Iterator[tuple[Amounts, Amounts]]:
    """The requests and limits that a kind of item bounds: of each container, or of the whole pod."""
    if kind == "Pod":
        yield _of_pod(spec, "requests"), _of_pod(spec, "limits")
    elif kind == "Container":
        for field in _KINDS:
            for container in spec.get(field) or ():
                resources = container.get("resources") or {}
                yield resources.get("requests") or {}, resources.get("limits") or {}


def _of_pod(spec: Object, field: str) -> Amounts:
    """The sum over containers, or what a larger init container has."""
    totals: dict[str, Fraction] = {}
    samples: dict[str, Any] = {}
    for kind in _KINDS:
        for container in spec.get(kind) or ():
            for name, amount in ((container.get("resources") or {}).get(field) or {}).items():
                value, before = parse(amount) or Fraction(0), totals.get(name, Fraction(0))
                totals[name] = before + value if kind == "containers" else max(before, value)
                samples.setdefault(name, amount)
    return {name: canonical(value, samples[name]) for name, value in totals.items()}


def _broken(item: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    kind = item["type"]
    for name, bound in (item.get("min") or {}).items():
        head = f"minimum {name} usage per {kind} is {_shown(bound)}"
        if name not in requests:
            yield f"{head}.  No request is specified"
        elif _value(requests[name]) < _value(bound):
            yield f"{head}, but request is {_shown(requests[name])}"
        elif name in limits and _value(limits[name]) < _value(bound):
            yield f"{head}, but limit is {_shown(limits[name])}"
    for name, bound in (item.get("max") or {}).items():
        head = f"maximum {name} usage per {kind} is {_shown(bound)}"
        if name not in limits:
            yield f"{head}.  No limit is specified"
        elif _value(limits[name]) > _value(bound):
            yield f"{head}, but limit is {_shown(limits[name])}"
        elif name in requests and _value(requests[name]) > _value(bound):
            yield f"{head}, but request is {_shown(requests[name])}"
    for name, bound in (item.get("maxLimitRequestRatio") or {}).items():
        head = f"{name} max limit to request ratio per {kind} is {_shown(bound)}"
        request, limit = _value(requests.get(name, 0)), _value(limits.get(name, 0))
        if not request:
            yield f"{head}, but no request is specified or request is 0"
        elif not limit:
            yield f"{head}, but no limit is specified or limit is 0"
        elif limit / request > _value(bound):
            yield f"{head}, but provided ratio is {float(limit / request):.6f}"


def _value(amount: Any) -> Fraction:
    return parse(amount) or Fraction(0)


def _shown(amount: Any) -> str:
    return canonical(_value(amount), amount)
