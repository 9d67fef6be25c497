"""The verdict on new pods and the wire around it; what is filled in and refused is in tests/dialects."""

import base64
from typing import Any

import jsonpatch
import msgspec
import pytest

from lamina.admission.review import (
    ALLOWED,
    AdmissionRequest,
    AdmissionReview,
    Verdict,
    answer,
    is_new_pod,
    new_pod,
)
from lamina.configuration import DEFAULT, Config, load
from lamina.ports.kube import Object
from tests.controller.reviews import review
from tests.worlds.objects import gpu_pod


def admitted(pod: Object, config: Config = DEFAULT) -> Object:
    """The pod as it is stored."""
    verdict = review(pod, config)
    assert verdict.allowed, verdict.message
    patched: Object = jsonpatch.apply_patch(pod, list(verdict.patch))
    assert review(patched, config) == ALLOWED, "a second review has nothing to add"
    return patched


def limits(pod: Object) -> Any:
    return pod["spec"]["containers"][0]["resources"]["limits"]


def test_a_count_is_filled_in_and_the_scheduler_named() -> None:
    pod = admitted(gpu_pod(gpumem=3000))
    assert limits(pod) == {"nvidia.com/gpumem": "3000", "nvidia.com/gpu": "1"}
    assert pod["spec"]["schedulerName"] == "hami-scheduler"


def test_who_may_not_have_high_priority_is_told() -> None:
    pod = gpu_pod(gpu=1, gpumem=3000, priority=0)
    request = AdmissionRequest(uid="1", object=pod, namespace="team")
    verdict = review(new_pod(request), DEFAULT)
    assert verdict.allowed and [warning.partition(",")[0] for warning in verdict.warnings] == [
        'container "main": priority 0 on a GPU counts as 1'
    ]
    answered = answer(AdmissionReview(api_version="v1", kind="AdmissionReview", request=request), verdict)
    assert answered["response"]["warnings"] == list(verdict.warnings)
    assert not review(pod, load("sharing: {highPriorityNamespaces: ['*']}", "c")).warnings


def test_pods_of_a_deployment_have_no_name_yet() -> None:
    pod = gpu_pod(gpu=1)
    del pod["metadata"]["name"]
    pod["metadata"]["generateName"] = "web-"
    assert review(pod, DEFAULT).patch
    limits(pod)["nvidia.com/gpu"] = "-1"
    assert "nvidia.com/gpu" in review(pod, DEFAULT).message


def test_only_pods_that_ask_for_gpus_wait_until_the_cluster_has_been_read() -> None:
    refused = review(gpu_pod(gpu=1), DEFAULT, ready=False)
    assert not refused.allowed and "still reading the cluster" in refused.message
    assert review(gpu_pod(), DEFAULT, ready=False) == ALLOWED


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodeName": "node-0"}, "already assigned to node node-0"),
        ({"privileged": True}, "a privileged container sees every GPU"),
        ({"gpumem": "1.5"}, "gpumem must be an integer from 1 to 2147483647, got 1.5"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(change: dict[str, Any], words: str) -> None:
    pod = gpu_pod(**{"gpu": 1, **{k: v for k, v in change.items() if k not in ("nodeName", "privileged")}})
    if "nodeName" in change:
        pod["spec"]["nodeName"] = change["nodeName"]
    if "privileged" in change:
        pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    verdict = review(pod, DEFAULT)
    assert not verdict.allowed and words in verdict.message and "\n" not in verdict.message and verdict.patch == ()


def asked_for(**changes: Any) -> AdmissionRequest:
    return msgspec.convert({"uid": "u", "object": gpu_pod(), "operation": "CREATE", **changes}, AdmissionRequest)


def test_only_creations_of_pods_are_reviewed() -> None:
    assert is_new_pod(asked_for()) and is_new_pod(asked_for(resource={"resource": "pods"}))
    for other in ({"operation": "UPDATE"}, {"subResource": "ephemeralcontainers"}, {"object": None}):
        assert not is_new_pod(asked_for(**other))
    assert not is_new_pod(asked_for(resource={"resource": "deployments"}))


def test_the_answer_is_a_review_of_the_same_request() -> None:
    asked = AdmissionReview(api_version="admission.k8s.io/v1", kind="AdmissionReview", request=asked_for())
    patch = ({"op": "add", "path": "/x", "value": 1},)
    allowed = answer(asked, Verdict(allowed=True, patch=patch))
    assert (allowed["apiVersion"], allowed["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert allowed["response"]["uid"] == "u" and allowed["response"]["patchType"] == "JSONPatch"
    assert msgspec.json.decode(base64.b64decode(allowed["response"]["patch"])) == list(patch)
    assert answer(asked, ALLOWED)["response"] == {"uid": "u", "allowed": True}
    refused = answer(asked, Verdict(allowed=False, message="no"))["response"]
    assert refused["status"]["message"] == "no" and refused["status"]["code"] == 403
