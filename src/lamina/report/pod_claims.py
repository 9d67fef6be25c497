"""The ResourceClaims by which pods request GPUs: what they wait for, and which nodes have room for them.

A claim is about GPUs unless its DeviceClasses say otherwise: their expressions name the driver of a device, so one that
names other drivers alone asks for other devices. Every agent's own driver counts, and those of NVIDIA and HAMi.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from lamina.core.quantities import parse_quantity
from lamina.dialects.containers import read_containers
from lamina.dra.claim_fit import ClaimFit, fit_claims
from lamina.dra.device_room import ClaimRoom, rooms
from lamina.dra.names import DRIVER, HAMI_DRIVER
from lamina.dra.selectors import named_texts
from lamina.dra.slices import digest_of
from lamina.dra.wanted_devices import WantedClaim, by_class, wanted_claim
from lamina.errors import BadInput
from lamina.ledger.observed_claims import ObservedClaims
from lamina.placement import Cause, Miss
from lamina.ports.kube import (
    DEVICE_CLASSES,
    EVENTS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Kube,
    NotFound,
    Object,
    Refused,
)
from lamina.report.device_taint_rules import read_rules

log = logging.getLogger(__name__)

NOT_PREPARED = "FailedPrepareDynamicResources"
"""The reason of kubelet's events about claims that a driver refuses to prepare."""
IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""The prefix of the extended resource that each DeviceClass has."""
_READ = (RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, DEVICE_CLASSES, RESOURCE_SLICES)


class ClaimObjects(NamedTuple):
    """What claims are read from. `unread` says what may not be read, or is empty."""

    claims: list[Object]
    templates: list[Object]
    classes: list[Object]
    slices: list[Object]
    events: list[Object]
    rules: list[Object]
    """DeviceTaintRules."""
    unread: str = ""


NO_CLAIMS = ClaimObjects([], [], [], [], [], [])


async def read_claims(kube: Kube) -> ClaimObjects:
    """All of it. A server before Kubernetes 1.34 has none."""
    found: list[list[Object]] = []
    unread = []
    for resource in _READ:
        try:
            found.append((await kube.list(resource)).items)
        except NotFound:
            found.append([])
        except Refused:
            found.append([])
            unread.append(resource.plural)
    claims, templates, classes, slices = found
    sentence = f"you may not list {', '.join(unread)}, so what pods with ResourceClaims wait for is not known"
    events = await _events(kube) if claims else []
    rules = await read_rules(kube) if slices else []
    return ClaimObjects(claims, templates, classes, slices, events, rules, sentence if unread else "")


async def _events(kube: Kube) -> list[Object]:
    try:
        return (await kube.list(EVENTS, fields=f"reason={NOT_PREPARED}")).items
    except (NotFound, Refused):
        return []


class PodClaim(NamedTuple):
    """A claim of a pod, by the name that the pod gives it. `problem` says why there is none to allocate."""

    entry: str
    name: str
    wanted: WantedClaim | None
    node: str = ""
    """The node on which it is allocated."""
    problem: str = ""

    @property
    def title(self) -> str:
        return f"ResourceClaim {self.name}" if self.name else f"its claim {self.entry}"


class PodClaims:
    """Those of one reading of a cluster."""

    def __init__(self, objects: ClaimObjects = NO_CLAIMS) -> None:
        self._claims = {_key(each): each for each in objects.claims}
        self._templates = {_key(each): each for each in objects.templates}
        self._classes = {each["metadata"]["name"]: each for each in objects.classes}
        self._objects = objects
        self._taken: dict[tuple[str, str], str] = {}
        """The nodes where claims were allocated that `take` took devices for."""
        self._slices = objects.slices
        self._events = objects.events
        self.unread = objects.unread
        self._fits: dict[tuple[tuple[WantedClaim | None, str], ...], dict[str, ClaimFit]] = {}
        """By what claims ask for and where they are: replicas ask for the same."""

    def of(self, pod: Object) -> list[PodClaim]:
        """The claims about GPUs of the pod, in its order."""
        return [each for each in (*self._named(pod), *self._implicit(pod)) if self._about_gpus(each)]

    def problem(self, pod: Object) -> str:
        """What keeps the claims from being allocated on whatever node, or nothing."""
        return "; ".join(filter(None, map(self._problem, self.of(pod))))

    def misses(self, pod: Object) -> dict[str, Miss | None]:
        """What nodes lack for the claims, whatever is free otherwise; None for those with room, as far as is known."""
        claims = self.of(pod)
        if not claims:
            return {}
        return {node: _miss(fit) for node, fit in self.fits(claims).items()}

    def fits(self, claims: Iterable[PodClaim]) -> dict[str, ClaimFit]:
        """What nodes have for the claims, those included that are allocated there."""
        listed = list(claims)
        key = tuple((each.wanted, each.node) for each in listed)
        if key not in self._fits:
            self._fits[key] = {node: self._fit(listed, room.copy()) for node, room in self.rooms.items()}
        return self._fits[key]

    def is_certain(self, pod: Object) -> bool:
        """Whether a node is known to have room for the claims."""
        return any(fit.certain and not fit.lacks for fit in self.fits(self.of(pod)).values())

    def take(self, pod: Object, node: str) -> tuple[str, ...]:
        """Take the devices that the claims of the pod would have on the node. Returns their names.

        A claim that pods share is there from now on.
        """
        claims, self._fits = self.of(pod), {}
        devices = self._fit(claims, self.rooms[node]).devices
        self._taken |= {(pod["metadata"]["namespace"], each.name): node for each in claims if each.name}
        return devices

    def with_manifest(self, claims: Iterable[Object], templates: Iterable[Object]) -> "PodClaims":
        """The same, with claims and templates that a manifest adds."""
        objects = self._objects
        claims = [_with_uid(each) for each in claims]
        added = objects._replace(claims=[*objects.claims, *claims], templates=[*objects.templates, *templates])
        return PodClaims(added)

    @property
    def offered(self) -> str:
        """How many devices are offered, in words."""
        count = sum(len(room.devices) for room in self.rooms.values())
        free = sum(not device.in_use for room in self.rooms.values() for device in room.devices)
        return f"{count} device{' is' if count == 1 else 's are'} offered, {free} of them not in use"

    def not_prepared(self, pod: Object) -> str:
        """What kubelet said last of claims that cannot be prepared, or nothing."""
        meta = pod["metadata"]
        own = [
            each
            for each in self._events
            if (each.get("involvedObject") or {}).get("uid") == meta["uid"]
            and each["metadata"].get("namespace") == meta["namespace"]
            and each.get("reason") == NOT_PREPARED
        ]
        last = max(own, key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""), default=None)
        return "" if last is None else str(last.get("message") or NOT_PREPARED)

    @cached_property
    def observed(self) -> ObservedClaims:
        """The same as the controller observes it, so that its rules can be asked. Templates are known here too."""
        own = {each["spec"]["driver"] for each in self._slices if digest_of(each)}
        found = ObservedClaims(min(own, default=DRIVER))
        observers = (
            (found.observe_class, self._classes),
            (found.observe_template, self._templates),
            (found.observe, self._claims),
        )
        for observe, objects in observers:
            for each in objects.values():
                try:
                    observe(each)
                except Exception as error:
                    log.warning("%s cannot be read: %r", each["metadata"]["name"], error)
        return found

    @cached_property
    def rooms(self) -> dict[str, ClaimRoom]:
        return rooms(self._slices, self._claims.values(), self._objects.rules)

    @cached_property
    def _drivers(self) -> set[str]:
        """The drivers of NVIDIA's GPUs."""
        return {DRIVER, HAMI_DRIVER, *(each["spec"]["driver"] for each in self._slices if digest_of(each))}

    @cached_property
    def _selectors(self) -> dict[str, tuple[str, ...]]:
        return {name: _expressions(each) for name, each in self._classes.items()}

    def _fit(self, claims: list[PodClaim], room: ClaimRoom) -> ClaimFit:
        for each in claims:
            if each.node and each.node != room.node:
                return ClaimFit(f"{each.title} is allocated on node {each.node}", lasting=True)
        wanted = [each.wanted for each in claims if each.wanted is not None and not each.node]
        return fit_claims(wanted, room, self._selectors)

    def _problem(self, claim: PodClaim) -> str:
        if claim.problem or claim.wanted is None or self.unread:
            return claim.problem
        missing = {
            wanted.device_class
            for alternatives in claim.wanted.requests
            for wanted in alternatives
            if all(each.device_class not in self._classes for each in alternatives)
        }
        if missing and not claim.node:
            return f"{claim.title} needs DeviceClass {' and '.join(sorted(missing))}, which does not exist"
        if not self.rooms and not claim.node:
            return f"{claim.title} waits: no node offers devices to claims"
        return ""

    def _named(self, pod: Object) -> Iterator[PodClaim]:
        namespace, status = pod["metadata"]["namespace"], pod.get("status") or {}
        made = {each["name"]: each.get("resourceClaimName") for each in status.get("resourceClaimStatuses") or ()}
        for each in pod["spec"].get("resourceClaims") or ():
            entry, template = each["name"], each.get("resourceClaimTemplateName") or ""
            name = each.get("resourceClaimName") or made.get(entry) or ""
            if name or not template:
                yield self._claim(entry, namespace, name)
            elif entry not in made:
                yield self._templated(entry, namespace, template)
        extended = status.get("extendedResourceClaimStatus") or {}
        if extended.get("resourceClaimName"):
            yield self._claim("", namespace, extended["resourceClaimName"])

    def _claim(self, entry: str, namespace: str, name: str) -> PodClaim:
        claim = self._claims.get((namespace, name))
        if claim is None and self.unread:
            return PodClaim(entry, name, None)
        if claim is None:
            return PodClaim(entry, name, None, problem=f"ResourceClaim {name} does not exist")
        problem = f"ResourceClaim {name} is being deleted" if claim["metadata"].get("deletionTimestamp") else ""
        node = self._node_of(claim) or self._taken.get((namespace, name), "")
        return _read(PodClaim(entry, name, None, node, problem), claim.get("spec") or {})

    def _node_of(self, claim: Mapping[str, Any]) -> str:
        """Where an allocated claim is, by the pool of its GPUs, which has the name of their node."""
        allocation = (claim.get("status") or {}).get("allocation") or {}
        results = (allocation.get("devices") or {}).get("results") or ()
        return next((str(each.get("pool") or "") for each in results if each.get("driver") in self._drivers), "")

    def _templated(self, entry: str, namespace: str, name: str) -> PodClaim:
        template = self._templates.get((namespace, name))
        if template is None and self.unread:
            return PodClaim(entry, "", None)
        if template is None:
            return PodClaim(entry, "", None, problem=f"ResourceClaimTemplate {name} does not exist")
        return _read(PodClaim(entry, "", None), (template.get("spec") or {}).get("spec") or {})

    def _implicit(self, pod: Object) -> Iterator[PodClaim]:
        """Claims that kube-scheduler makes for extended resources of classes, before it has made them."""
        if (pod.get("status") or {}).get("extendedResourceClaimStatus"):
            return
        if not any(name.startswith(IMPLICIT) for name in _resources(pod["spec"])):
            return
        for container in read_containers(pod):
            for name in sorted(container.requested):
                device_class = name.removeprefix(IMPLICIT)
                count = parse_quantity(container.requested[name], where=name).whole
                if device_class != name and count:
                    yield PodClaim(name, "", by_class(container.name, device_class, count))

    def _about_gpus(self, claim: PodClaim) -> bool:
        if claim.wanted is None:
            return True
        classes = [wanted.device_class for alternatives in claim.wanted.requests for wanted in alternatives]
        return any(self._class_of_gpus(each) for each in classes)

    def _class_of_gpus(self, name: str) -> bool:
        """A class that does not exist, or selects by no text, may be one of GPUs."""
        expressions = self._selectors.get(name, ())
        texts = named_texts(expressions)
        return not texts or bool(texts & self._drivers)


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def _with_uid(claim: Object) -> Object:
    """A claim of a manifest, with what distinguishes it from others once it exists."""
    return {**claim, "metadata": {"uid": "/".join(_key(claim)), **claim["metadata"]}}


def _expressions(device_class: Mapping[str, Any]) -> tuple[str, ...]:
    selectors = (device_class.get("spec") or {}).get("selectors") or ()
    return tuple(expression for each in selectors if (expression := (each.get("cel") or {}).get("expression")))


def _read(claim: PodClaim, spec: Mapping[str, Any]) -> PodClaim:
    try:
        return claim._replace(wanted=wanted_claim(spec))
    except BadInput as problem:
        return claim._replace(problem=str(problem))


def _resources(spec: Mapping[str, Any]) -> Iterator[str]:
    """The names of all resources in the containers of a pod."""
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        for amounts in (container.get("resources") or {}).values():
            yield from amounts if isinstance(amounts, Mapping) else ()


def _miss(fit: ClaimFit) -> Miss | None:
    if not fit.lacks:
        return None
    cause = Cause.SIZE if fit.lasting else Cause.MEMORY
    return Miss(fit.lacks, cause, fit.lasting, (int(cause), 0, 0.0))
