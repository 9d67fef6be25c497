"""Which claims a pod needs, as pure functions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lamina.ports.kube import PODS, RESOURCE_CLAIMS, Object
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.quantities import parse

EXTENDED = "resource.kubernetes.io/extended-resource-claim"
IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Prefix of the extended resource that every device class has, without naming one."""


class ClaimsNotReady(Exception):
    """The pod cannot be scheduled before its claims change; the message says what is missing."""


def named(pod: Object, find: Callable[[str], Object | None]) -> list[Object]:
    """The claims that the pod's spec names. `find` returns a claim by its key. Raises ClaimsNotReady."""
    generated = {
        entry["name"]: entry.get("resourceClaimName")
        for entry in objects.status(pod).get("resourceClaimStatuses") or ()
    }
    claims = []
    for entry in objects.spec(pod).get("resourceClaims") or ():
        name = entry.get("resourceClaimName") or generated.get(entry["name"])
        if name is None:
            raise ClaimsNotReady(f"waiting for the ResourceClaim of {entry['name']} to be created from its template")
        claim = find(f"{objects.namespace(pod)}/{name}")
        if claim is None:
            raise ClaimsNotReady(f'resourceclaim "{name}" not found')
        _check(claim, pod, from_template="resourceClaimName" not in entry)
        claims.append(claim)
    return claims


def _check(claim: Object, pod: Object, *, from_template: bool) -> None:
    if objects.is_deleting(claim):
        raise ClaimsNotReady(f'resourceclaim "{objects.name(claim)}" is being deleted')
    owner = objects.controller(claim) or {}
    if from_template and owner.get("uid") != objects.uid(pod):
        raise ClaimsNotReady(
            f"ResourceClaim {objects.key(claim)} was not created for pod {objects.key(pod)} (pod is not owner)"
        )


def is_allocated(claim: Object) -> bool:
    return bool(objects.status(claim).get("allocation"))


def is_extended_of(claim: Object, pod: Object) -> bool:
    """Whether the claim was made for the pod's extended resources."""
    owner = objects.controller(claim) or {}
    return EXTENDED in objects.annotations(claim) and owner.get("uid") == objects.uid(pod)


def is_extended_resource(name: str) -> bool:
    """Whether Kubernetes knows nothing of the resource but its name, or a device class has the name."""
    return name.startswith(IMPLICIT) or ("/" in name and "kubernetes.io/" not in name)


def classes_by_resource(classes: Iterable[Object]) -> dict[str, str]:
    """The device class that serves each extended resource. Of two classes with one resource, the newer one does."""
    found: dict[str, str] = {}
    for entry in sorted(classes, key=lambda entry: str(objects.meta(entry).get("creationTimestamp"))):
        found[f"{IMPLICIT}{objects.name(entry)}"] = objects.name(entry)
        if resource := objects.spec(entry).get("extendedResourceName"):
            found[resource] = objects.name(entry)
    return found


def extended_claim(pod: Object, served: Mapping[str, str]) -> tuple[Object, list[Object]] | None:
    """A claim for the pod's extended resources among `served` (resource -> class), and which request is for which.

    None if the pod requests none of them.
    """
    requests: list[Object] = []
    mappings: list[Object] = []
    for at, container in enumerate(_containers(pod)):
        limits = (container.get("resources") or {}).get("limits") or {}
        for number, resource in enumerate(sorted(served.keys() & limits.keys())):
            count = int(parse(limits[resource]) or 0)
            if count:
                name = f"container-{at}-request-{number}"
                wanted = {"deviceClassName": served[resource], "allocationMode": "ExactCount", "count": count}
                requests.append({"name": name, "exactly": wanted})
                mappings.append({"containerName": container["name"], "resourceName": resource, "requestName": name})
    if not requests:
        return None
    metadata: Object = {
        "generateName": f"{objects.name(pod)}-extended-resources-",
        "namespace": objects.namespace(pod),
        "annotations": {EXTENDED: "true"},
        "ownerReferences": [objects.owner_reference(PODS.api_version, PODS.kind, pod)],
    }
    claim = {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": metadata,
        "spec": {"devices": {"requests": requests}},
    }
    return claim, mappings


def _containers(pod: Object) -> Iterator[Mapping[str, Any]]:
    spec = objects.spec(pod)
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()
