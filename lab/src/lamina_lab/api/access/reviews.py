"""Access and self-subject reviews, which are answered but not stored. In the lab, the one user may do everything."""

from msgspec import Struct

from lamina.ports.kube import Object

USER = "lab-admin"


class ReviewKind(Struct, frozen=True):
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False


REVIEWS = {
    resource.plural: resource
    for resource in (
        ReviewKind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        ReviewKind("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
        ReviewKind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview"),
    )
}


def answer(review: ReviewKind, asked: Object) -> Object:
    status: Object = {"allowed": True}
    if review.kind == "SelfSubjectRulesReview":
        rules = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        status = {"resourceRules": [rules], "nonResourceRules": [], "incomplete": False}
    if review.kind == "SelfSubjectReview":
        status = {"userInfo": {"username": USER, "groups": ["system:masters", "system:authenticated"]}}
    meta = {"creationTimestamp": None}
    api_version = f"{review.group}/{review.version}"
    kind = {"kind": review.kind, "apiVersion": api_version}
    return {**kind, "metadata": meta, "spec": asked.get("spec") or {}, "status": status}
