"""The decision about a new pod: refuse it with one sentence, or admit it with defaults filled in. Pure.

Only the creation of a pod is reviewed: the resources of a running pod cannot change, and ephemeral containers cannot
have any. Where GPUs are hidden, both are reviewed for that alone. In the template of a workload only fractions of a GPU
are changed, which the API server would refuse. That its pods will be refused is a warning.

Any client of the port can ask in the name of any namespace, so no answer depends on what a namespace has. A pod over
its quota is admitted, and waits: the filter and the binding refuse it, with the reason in an event of the pod.
"""

import base64
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from lamina.configuration import Config
from lamina.dialects import (
    PatchOperation,
    check_pod,
    check_workload,
    fill_defaults,
    fill_template,
    hide_from_ephemeral,
    hide_gpus,
    lending_notice,
    parse,
    places,
    template_notice,
    template_warnings,
    unserved_warning,
)
from lamina.dialects.by_claim import claim_for, use_claim
from lamina.dialects.claim_gate import gate_claims
from lamina.dialects.templates import WORKLOADS
from lamina.dra.generated import GeneratedClaim
from lamina.errors import BadInput


class Verdict(Struct, frozen=True, kw_only=True):
    """`message` says why a pod is refused; `patch` is the JSON patch for a pod that is admitted, and `warnings` are
    shown to who creates it. `notice` is one that its namespace gets once."""

    allowed: bool
    message: str = ""
    patch: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()
    notice: str = ""


ALLOWED = Verdict(allowed=True)


def refused(message: str) -> Verdict:
    """The verdict on an object that is refused with this sentence."""
    return Verdict(allowed=False, message=message)


_NO_POD: dict[str, Any] = {"spec": {"containers": []}}


class Demand(Struct, frozen=True, kw_only=True):
    """What a new pod requests, as far as what is known of the cluster decides whether it is admitted."""

    native_devices: tuple[str, ...] = ()
    """The resources that some node must offer without grants; none where grants will do."""
    only_native_reason: str = ""


def review(pod: Mapping[str, Any], config: Config) -> tuple[Verdict, Demand | None]:
    """The verdict on a new pod by its manifest, and what `refusal_of` must not refuse before the pod is admitted.

    There is no demand where the pod is refused, or requests no GPU: such pods never have to wait for the cluster to be
    read. A pod for a scheduler that Lamina does not extend is admitted unchanged: without a grant it gets none of
    Lamina's GPUs.
    """
    if not places(pod.get("spec") or {}, config):
        return _left_alone(pod, config), None
    try:
        request = parse(pod, config)
        changes = fill_defaults(pod, request, config)
        claim = claim_for(pod, request, config) if request is not None else ""
    except BadInput as problem:
        return refused(str(problem)), None
    if request is None:
        return _admitted(changes), None
    notice = "" if _is_controlled(pod) else lending_notice(request, config)
    if isinstance(claim, GeneratedClaim):
        return _admitted(use_claim(pod, claim, config), request.warnings, notice), None
    warnings = (*request.warnings, *([claim] if claim else []))
    demand = Demand(
        native_devices=request.native_devices if request.only_native_reason else (),
        only_native_reason=request.only_native_reason,
    )
    return _admitted(changes, warnings, notice), demand


def refusal_of(
    demand: Demand,
    *,
    ready: bool,
    offered: Callable[[Collection[str]], bool],
) -> str:
    """Why the cluster does not admit the demand, as a sentence, or nothing.

    `offered` says whether some node offers resources without grants. Until the cluster has been read (`ready`), every
    demand is refused.
    """
    if not ready:
        return "Lamina is still reading the cluster; create the pod again"
    if demand.only_native_reason and not offered(demand.native_devices):
        return demand.only_native_reason
    return ""


def review_template(workload: Mapping[str, Any], namespace: str, config: Config) -> Verdict:
    """The verdict on a new or changed workload, such as a Deployment.

    A workload whose pods will be refused is admitted with a warning: its template may be corrected by a later change,
    and a change of something else, such as the number of replicas, must remain possible.
    """
    try:
        check_workload(workload)
        changes = fill_template(workload, config)
    except BadInput as problem:
        return refused(str(problem))
    notice = "" if _is_controlled(workload) else template_notice(workload, namespace, config)
    return _admitted(changes, template_warnings(workload, namespace, config), notice)


class AdmissionRequest(Struct, frozen=True, rename="camel"):
    """The request part of an AdmissionReview, as far as it is read."""

    uid: str
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    namespace: str = ""
    operation: str = "CREATE"
    sub_resource: str = ""
    resource: dict[str, str] = {}


class AdmissionReview(Struct, frozen=True, rename="camel"):
    """`AdmissionReview` of admission.k8s.io/v1."""

    api_version: str
    kind: str
    request: AdmissionRequest


def decode_review(body: bytes) -> AdmissionReview:
    """The review in the body of a request. Raises BadInput."""
    try:
        return msgspec.json.decode(body, type=AdmissionReview)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(str(error)) from error


def is_new_pod(request: AdmissionRequest) -> bool:
    """Whether the review is about the creation of a pod. Lamina registers for no other operation on pods."""
    return (
        request.operation == "CREATE"
        and not request.sub_resource
        and request.resource.get("resource", "pods") == "pods"
        and request.object is not None
    )


def adds_ephemeral_containers(request: AdmissionRequest) -> bool:
    """Whether the review is about a change of a pod's ephemeral containers. Others cannot change with them."""
    return (
        request.operation == "UPDATE"
        and request.sub_resource == "ephemeralcontainers"
        and request.resource.get("resource", "pods") == "pods"
        and request.object is not None
    )


def new_pod(request: AdmissionRequest) -> dict[str, Any]:
    """The pod that is created, in the namespace of the request. Raises BadInput for a malformed one.

    The API server drops the status that a new pod comes with, but only after it has asked.
    """
    pod = request.object or {}
    check_pod(pod)
    metadata = {**(pod.get("metadata") or {}), "namespace": request.namespace}
    return {**{key: value for key, value in pod.items() if key != "status"}, "metadata": metadata}


def review_visibility(request: AdmissionRequest, config: Config) -> Verdict:
    """The verdict on a new pod, or on new ephemeral containers, from which GPUs are to be hidden."""
    if not config.admission.hide_gpus or not (is_new_pod(request) or adds_ephemeral_containers(request)):
        return ALLOWED
    try:
        check_pod(pod := request.object or {})
        if not request.sub_resource:
            return _admitted(hide_gpus(pod, config))
        check_pod(before := request.old_object or _NO_POD)
        present = before["spec"].get("ephemeralContainers") or ()
        return _admitted(hide_from_ephemeral(pod, {container["name"] for container in present}))
    except BadInput as problem:
        return refused(str(problem))


def review_claims(request: AdmissionRequest) -> Verdict:
    """The verdict on a new pod with claims: it waits until the controller has compared them with the quotas."""
    if not is_new_pod(request):
        return ALLOWED
    try:
        check_pod(pod := request.object or {})
        return _admitted(gate_claims(pod))
    except BadInput as problem:
        return refused(str(problem))


def is_workload(request: AdmissionRequest) -> bool:
    """Whether the review is about an object with a pod template."""
    resources = WORKLOADS.get(request.resource.get("group", ""), ())
    return (
        request.operation in ("CREATE", "UPDATE")
        and not request.sub_resource
        and request.resource.get("resource") in resources
        and request.object is not None
    )


def answer(admission_review: AdmissionReview, verdict: Verdict) -> dict[str, Any]:
    """The AdmissionReview to send back."""
    response: dict[str, Any] = {"uid": admission_review.request.uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = {"code": 403, "reason": "Forbidden", "message": verdict.message}
    if verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return {"apiVersion": admission_review.api_version, "kind": admission_review.kind, "response": response}


def _left_alone(pod: Mapping[str, Any], config: Config) -> Verdict:
    with contextlib.suppress(BadInput):
        if warning := unserved_warning(pod, config):
            return _admitted((), (warning,))
    return ALLOWED


def _is_controlled(obj: Mapping[str, Any]) -> bool:
    """Whether a controller made it, which passes no warning on to a person."""
    owners = (obj.get("metadata") or {}).get("ownerReferences") or ()
    return any(owner.get("controller") for owner in owners)


def _admitted(changes: Iterable[PatchOperation], warnings: tuple[str, ...] = (), notice: str = "") -> Verdict:
    patch = tuple(change.to_json() for change in changes)
    return Verdict(allowed=True, patch=patch, warnings=warnings, notice=notice)
