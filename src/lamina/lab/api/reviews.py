"""Questions that are only asked, never stored: may I, and who am I. In the lab, the one user may do everything."""

from __future__ import annotations

from dataclasses import dataclass

from lamina.lab.api.status import Obj

USER = "lab-admin"


@dataclass(frozen=True, slots=True)
class Review:
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False


REVIEWS = {
    each.plural: each
    for each in (
        Review("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        Review("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
        Review("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview"),
    )
}


def answer(review: Review, asked: Obj) -> Obj:
    status: Obj = {"allowed": True}
    if review.kind == "SelfSubjectRulesReview":
        rules = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        status = {"resourceRules": [rules], "nonResourceRules": [], "incomplete": False}
    if review.kind == "SelfSubjectReview":
        status = {"userInfo": {"username": USER, "groups": ["system:masters", "system:authenticated"]}}
    meta = {"creationTimestamp": None}
    api_version = f"{review.group}/{review.version}"
    kind = {"kind": review.kind, "apiVersion": api_version}
    return {**kind, "metadata": meta, "spec": asked.get("spec") or {}, "status": status}
