"""The decision over a new pod: refuse it in one sentence, or let it in with the defaults filled in. Pure.

Of pods only creations are reviewed. Resources of a running pod cannot be changed, and ephemeral containers cannot have
any. In the template of a workload nothing is looked at but fractions of a GPU, which the API server would refuse.
"""

import base64
from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from lamina.control.quotas import Quota, asked, excess
from lamina.dialects import defaults, parse, schedulers, template_fills
from lamina.dialects.config import Config
from lamina.dialects.templates import WORKLOADS
from lamina.errors import BadInput
from lamina.model.ledger import NOTHING, Taken


class Verdict(Struct, frozen=True, kw_only=True):
    """`message` says why a pod is refused; `patch` is the JSON patch for one that is let in."""

    allowed: bool
    message: str = ""
    patch: tuple[dict[str, Any], ...] = ()


ALLOWED = Verdict(allowed=True)


def review(
    pod: Mapping[str, Any],
    config: Config,
    quotas: list[Quota] | None = None,
    used: Callable[[], Taken] = lambda: NOTHING,
    *,
    ready: bool = True,
    offered: Callable[[Collection[str]], bool] = lambda resources: False,
) -> Verdict:
    """What becomes of a new pod. `quotas` are its namespace's, `used` what the namespace holds already, and `offered`
    says whether some node gives out resources without grants.

    A pod that another scheduler is to place is none of our business: without a grant it gets no GPU of ours. Until
    quotas and grants have been read (`ready`) no pod that asks for GPUs is let in; others are never kept waiting.
    """
    scheduler = (pod.get("spec") or {}).get("schedulerName") or "default-scheduler"
    if scheduler not in schedulers(config):
        return ALLOWED
    try:
        request = parse(pod, config)
        fills = defaults(pod, config)
    except BadInput as problem:
        return Verdict(allowed=False, message=str(problem))
    if request is not None:
        if not ready:
            return Verdict(allowed=False, message="Lamina is still reading the cluster; create the pod again")
        if request.only_plain and not offered(request.plain):
            return Verdict(allowed=False, message=request.only_plain)
        beyond = excess(quotas or (), used, asked(request), config)
        if beyond:
            return Verdict(allowed=False, message=beyond)
    return Verdict(allowed=True, patch=tuple(fill.operation for fill in fills))


def review_template(workload: Mapping[str, Any], config: Config) -> Verdict:
    """What becomes of a new or changed workload, such as a Deployment."""
    try:
        fills = template_fills(workload, config)
    except BadInput as problem:
        return Verdict(allowed=False, message=str(problem))
    return Verdict(allowed=True, patch=tuple(fill.operation for fill in fills))


class Asked(Struct, frozen=True, rename="camel"):
    """The request part of an AdmissionReview, as far as it is read."""

    uid: str
    object: dict[str, Any] | None = None
    namespace: str = ""
    operation: str = "CREATE"
    sub_resource: str = ""
    resource: dict[str, str] = {}


class AdmissionReview(Struct, frozen=True, rename="camel"):
    """`AdmissionReview` of admission.k8s.io/v1."""

    api_version: str
    kind: str
    request: Asked


def is_new_pod(asked: Asked) -> bool:
    """Whether the review is about the creation of a pod; anything else was registered by somebody else."""
    return (
        asked.operation == "CREATE"
        and not asked.sub_resource
        and asked.resource.get("resource", "pods") == "pods"
        and asked.object is not None
    )


def is_workload(asked: Asked) -> bool:
    """Whether the review is about something with a template of pods."""
    of_group = WORKLOADS.get(asked.resource.get("group", ""), ())
    return (
        asked.operation in ("CREATE", "UPDATE")
        and not asked.sub_resource
        and asked.resource.get("resource") in of_group
        and asked.object is not None
    )


def answer(review_of: AdmissionReview, verdict: Verdict) -> dict[str, Any]:
    """The AdmissionReview to send back."""
    response: dict[str, Any] = {"uid": review_of.request.uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = {"code": 403, "reason": "Forbidden", "message": verdict.message}
    if verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
    return {"apiVersion": review_of.api_version, "kind": review_of.kind, "response": response}
