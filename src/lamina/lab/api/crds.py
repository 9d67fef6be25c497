"""CustomResourceDefinitions: what they serve from the moment they are stored."""

from __future__ import annotations

from lamina.lab.api.resources import Catalogue, Resource
from lamina.lab.api.status import Obj

STORAGE = "customresourcedefinitions.apiextensions.k8s.io"


def fill(crd: Obj) -> None:
    """Defaults of a definition's names, in place."""
    spec = crd.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict) or not names.get("kind"):
        return
    names.setdefault("singular", str(names["kind"]).lower())
    names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})


def establish(crd: Obj, now: str) -> None:
    """The status of a definition that is served, in place. Its names were checked, so nothing is left to wait for."""
    spec = crd["spec"]
    stored = [each["name"] for each in spec["versions"] if each.get("storage")]
    conditions = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
    ]
    crd["status"] = {"acceptedNames": spec["names"], "conditions": conditions, "storedVersions": stored}


def resources(crd: Obj) -> list[Resource]:
    """One resource for each served version, the storage version first."""
    spec, names = crd["spec"], crd["spec"]["names"]
    served = [each for each in spec["versions"] if each.get("served", True)]
    return [
        Resource(
            group=spec["group"],
            version=version["name"],
            kind=names["kind"],
            plural=names["plural"],
            namespaced=spec["scope"] == "Namespaced",
            short=tuple(names.get("shortNames") or ()),
            subresources=("status",) if "status" in (version.get("subresources") or {}) else (),
            categories=tuple(names.get("categories") or ()),
            columns=tuple(version.get("additionalPrinterColumns") or ()),
            custom=True,
        )
        for version in sorted(served, key=lambda each: not each.get("storage"))
    ]


def serve(catalogue: Catalogue, crd: Obj) -> None:
    catalogue.define(crd["metadata"]["name"], resources(crd))


def _condition(kind: str, reason: str, message: str, now: str) -> Obj:
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}
