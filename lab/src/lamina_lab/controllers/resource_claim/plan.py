"""What happens to claims, as pure functions of claims and pods."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lamina.ports.kube import PODS, RESOURCE_CLAIMS, Object
from lamina_lab.kubernetes import objects

ENTRY = "resource.kubernetes.io/pod-claim-name"
"""The annotation with the name, in the pod's spec, of the claim that was made from a template."""
PROTECTION = "resource.kubernetes.io/delete-protection"
"""The finalizer of an allocated claim."""
RELEASED: Object = {"status": {"allocation": None, "reservedFor": None, "devices": None}}
"""The change of a claim that frees its devices."""


def made_for(pod: Object, claims: Iterable[Object]) -> dict[str, Object]:
    """The claims that belong to the pod alone, by the name of their entry in its spec."""
    own = {"kind": PODS.kind, "uid": objects.uid(pod)}
    return {
        str(objects.annotations(claim).get(ENTRY, "")): claim
        for claim in claims
        if own.items() <= dict(objects.controller(claim) or {}).items()
    }


def from_template(pod: Object, entry: str, template: Mapping[str, Any]) -> Object:
    """The claim to create for one entry of the pod."""
    body = objects.spec(template)
    given = body.get("metadata") or {}
    metadata: Object = {
        "generateName": f"{objects.name(pod)}-{entry}-",
        "namespace": objects.namespace(pod),
        "annotations": {**(given.get("annotations") or {}), ENTRY: entry},
        "ownerReferences": [objects.owner_reference(PODS.api_version, PODS.kind, pod)],
    }
    if given.get("labels"):
        metadata["labels"] = dict(given["labels"])
    return {
        "apiVersion": RESOURCE_CLAIMS.api_version,
        "kind": RESOURCE_CLAIMS.kind,
        "metadata": metadata,
        "spec": body.get("spec") or {},
    }


def statuses(pod: Object, made: Mapping[str, Object]) -> list[Object]:
    """`status.resourceClaimStatuses`: which claim each entry of the pod has got from its template."""
    return [
        {"name": entry["name"], "resourceClaimName": objects.name(made[entry["name"]])}
        for entry in objects.spec(pod).get("resourceClaims") or ()
        if entry.get("resourceClaimTemplateName") and entry["name"] in made
    ]


def users(claim: Object, find: Callable[[str], Object | None]) -> list[Object]:
    """The entries of `reservedFor` whose pods may still use the claim. `find` returns a pod by its key."""
    reserved = objects.status(claim).get("reservedFor") or ()
    return [dict(entry) for entry in reserved if entry.get("resource") != PODS.plural or _uses(claim, entry, find)]


def _uses(claim: Object, entry: Mapping[str, Any], find: Callable[[str], Object | None]) -> bool:
    pod = find(f"{objects.namespace(claim)}/{entry.get('name')}")
    return pod is not None and objects.uid(pod) == entry.get("uid") and not objects.is_finished(pod)
