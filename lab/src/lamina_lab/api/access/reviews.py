"""Reviews of access and tokens, which are answered but not stored."""

from typing import Any

from msgspec import Struct

from lamina.ports.kube import Object
from lamina_lab.api.access.identities import Identities
from lamina_lab.api.access.rbac import Attributes
from lamina_lab.api.access.users import User
from lamina_lab.kubernetes.errors import bad_request, invalid, required

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"


class ReviewKind(Struct, frozen=True):
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False


REVIEWS = {
    resource.plural: resource
    for resource in (
        ReviewKind(_AUTHORIZATION, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True),
        ReviewKind(_AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        ReviewKind(_AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
        ReviewKind(_AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview"),
        ReviewKind(_AUTHENTICATION, "v1", "selfsubjectreviews", "SelfSubjectReview"),
        ReviewKind(_AUTHENTICATION, "v1", "tokenreviews", "TokenReview"),
    )
}


def answer(review: ReviewKind, asked: Any, user: User, identities: Identities) -> Object:
    """The review with its status. Raises 400 and 422."""
    spec = asked.get("spec") or {} if isinstance(asked, dict) else None
    if not isinstance(spec, dict):
        raise bad_request(f"the body must be a {review.kind} object")
    meta = {"creationTimestamp": None}
    kind = {"kind": review.kind, "apiVersion": f"{review.group}/{review.version}"}
    return {**kind, "metadata": meta, "spec": spec, "status": _status(review, spec, user, identities)}


def _status(review: ReviewKind, spec: Object, user: User, identities: Identities) -> Object:
    match review.kind:
        case "SelfSubjectReview":
            return {"userInfo": user.info}
        case "SelfSubjectRulesReview":
            return _rules(spec, user, identities)
        case "TokenReview":
            return _token_status(spec, identities)
        case "SelfSubjectAccessReview":
            return {"allowed": identities.roles.allow(user, _attributes(review, spec))}
    if not (spec.get("user") or spec.get("groups")):
        cause = required("spec.user", "at least one of user or group must be specified")
        raise invalid(review.kind, review.group, "", [cause])
    who = User(spec.get("user") or "", tuple(spec.get("groups") or ()))
    return {"allowed": identities.roles.allow(who, _attributes(review, spec))}


def _attributes(review: ReviewKind, spec: Object) -> Attributes:
    """What a review asks about. Raises 422."""
    asked, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if bool(asked) == bool(path):
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(review.kind, review.group, "", [required("spec.resourceAttributes", detail)])
    if path:
        return Attributes(path.get("verb") or "", path=path.get("path") or "")
    assert asked is not None
    subresource = asked.get("subresource")
    resource = f"{asked.get('resource') or ''}{f'/{subresource}' if subresource else ''}"
    fields = {field: asked.get(field) or "" for field in ("verb", "group", "name", "namespace")}
    return Attributes(**fields, resource=resource)


def _rules(spec: Object, user: User, identities: Identities) -> Object:
    found = list(identities.roles.rules(user, spec.get("namespace") or ""))
    return {
        "resourceRules": [rule for rule in found if rule.get("resources")],
        "nonResourceRules": [rule for rule in found if rule.get("nonResourceURLs")],
        "incomplete": False,
    }


def _token_status(spec: Object, identities: Identities) -> Object:
    holder = identities.holder(spec.get("token") or "", spec.get("audiences") or ())
    if holder is None:
        return {"user": {}, "error": "[invalid bearer token]"}
    return {"authenticated": True, "user": holder.user.info, "audiences": list(holder.audiences)}
