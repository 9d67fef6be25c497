"""CustomResourceDefinitions: what they serve once they are stored."""

from lamina.ports.kube import Object
from lamina_lab.api.schema.resources import ApiResource, Catalog

STORAGE = "customresourcedefinitions.apiextensions.k8s.io"


def fill(crd: Object) -> None:
    """Fill in defaults of a definition's names, in place."""
    spec = crd.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict) or not names.get("kind"):
        return
    names.setdefault("singular", str(names["kind"]).lower())
    names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})


def establish(crd: Object, now: str) -> None:
    """The status of a served definition, in place. Its names were checked before."""
    spec = crd["spec"]
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    conditions = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
    ]
    crd["status"] = {"acceptedNames": spec["names"], "conditions": conditions, "storedVersions": stored}


def resources(crd: Object) -> list[ApiResource]:
    """One resource per served version, the storage version first."""
    spec, names = crd["spec"], crd["spec"]["names"]
    served = [version for version in spec["versions"] if version.get("served", True)]
    return [
        ApiResource(
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
            schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        )
        for version in sorted(served, key=lambda version: not version.get("storage"))
    ]


def serve(catalog: Catalog, crd: Object) -> None:
    catalog.define(crd["metadata"]["name"], resources(crd))


def _condition(kind: str, reason: str, message: str, now: str) -> Object:
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}
