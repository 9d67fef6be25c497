"""New pods: what is refused, what is filled in, what is left alone; and the wire around it."""

import base64
from typing import Any

import jsonpatch
import msgspec
import pytest

from lamina.control.admission import ALLOWED, AdmissionReview, Asked, Verdict, answer, is_new_pod, review
from lamina.control.quotas import Quotas
from lamina.dialects.config import Config, load
from lamina.model.ledger import Taken
from lamina.ports.kube import Object
from tests.control.cluster import gpu_pod

DEFAULT = Config()


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


def test_a_whole_gpu_gets_all_cores() -> None:
    assert limits(admitted(gpu_pod(gpu=1))) == {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "100"}


@pytest.mark.parametrize("name", ["hami-scheduler", "4pd-scheduler", "lamina-scheduler"])
def test_a_scheduler_of_ours_is_kept(name: str) -> None:
    assert admitted(gpu_pod(gpu=1, scheduler=name))["spec"]["schedulerName"] == name


@pytest.mark.parametrize(
    "pod", [gpu_pod(gpu=1, scheduler="yunikorn"), gpu_pod(gpu=-1, scheduler="yunikorn"), gpu_pod()]
)
def test_what_is_none_of_our_business_is_untouched(pod: Object) -> None:
    assert review(pod, DEFAULT) == ALLOWED


def test_pods_of_a_deployment_have_no_name_yet() -> None:
    pod = gpu_pod(gpu=1)
    del pod["metadata"]["name"]
    pod["metadata"]["generateName"] = "web-"
    assert review(pod, DEFAULT).patch
    limits(pod)["nvidia.com/gpu"] = "-1"
    assert "nvidia.com/gpu" in review(pod, DEFAULT).message


def test_only_init_containers_may_ask() -> None:
    pod = gpu_pod()
    asking = {"name": "init", "image": "x", "resources": {"requests": {"nvidia.com/gpumem": "100"}}}
    pod["spec"]["initContainers"] = [asking]
    init = admitted(pod)["spec"]["initContainers"][0]
    assert init["resources"]["limits"] == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("config", "field", "value"),
    [
        ("hami: {runtimeClassName: nvidia}", "runtimeClassName", "nvidia"),
        ("schedulerName: mine", "schedulerName", "mine"),
    ],
)
def test_the_configuration_decides(config: str, field: str, value: str) -> None:
    assert admitted(gpu_pod(gpu=1), load(config, "c"))["spec"][field] == value


def test_only_pods_that_ask_for_gpus_wait_until_the_cluster_has_been_read() -> None:
    refused = review(gpu_pod(gpu=1), DEFAULT, ready=False)
    assert not refused.allowed and "still reading the cluster" in refused.message
    assert review(gpu_pod(), DEFAULT, ready=False) == ALLOWED


def test_containers_without_gpus_are_told_to_see_none_where_configured() -> None:
    pod = gpu_pod(gpu=1)
    pod["spec"]["containers"].append({"name": "side", "image": "x"})
    side = admitted(pod, load("hami: {overwriteEnv: true}", "c"))["spec"]["containers"][1]
    assert side["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodeName": "node-0"}, "assigned to node node-0 already"),
        ({"privileged": True}, "is privileged"),
        ({"gpumem": "1.5"}, "gpumem is '1.5'"),
        ({"gpumem_percentage": 101}, "gpumem-percentage is '101'"),
        ({"gpu": 0}, "gpu is '0'"),
        ({"gpu_mem": 1}, "unknown resource nvidia.com/gpu-mem"),
        ({"gpumem": 1, "gpumem_percentage": 1}, "names both"),
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


@pytest.mark.parametrize(
    ("hard", "asked", "used", "words"),
    [
        ({"gpumem": "10000"}, {"gpumem": 4000}, Taken(2, 6000), ""),
        ({"gpumem": "10000"}, {"gpumem": 4001}, Taken(2, 6000), "allows 10000 of nvidia.com/gpumem; 6000 are taken"),
        ({"gpumem": "10k"}, {"gpu": 2, "gpumem": 5001}, Taken(), "the pod asks 10002"),
        ({"gpucores": "50"}, {"gpumem": 1, "gpucores": 51}, Taken(), "allows 50 of nvidia.com/gpucores"),
        ({"gpucores": "50"}, {"gpumem": 1}, Taken(1, 1, 50), ""),
        ({"gpumem": "0"}, {"gpu": 1}, Taken(), "allows no nvidia.com/gpumem"),
        ({"gpumem": "nonsense"}, {"gpumem": 1}, Taken(), "allows 0 of nvidia.com/gpumem"),
        ({"gpumem": "1"}, {"gpu": 1, "gpumem_percentage": 50}, Taken(), ""),
        ({"cpu": "1"}, {"gpumem": 1}, Taken(), ""),
    ],
)
def test_quotas(hard: dict[str, str], asked: dict[str, int], used: Taken, words: str) -> None:
    quotas = Quotas()
    named = {f"limits.nvidia.com/{key}": value for key, value in hard.items()}
    quotas.seen({"metadata": {"name": "gpu", "namespace": "default"}, "spec": {"hard": named}})
    verdict = review(gpu_pod(**asked), DEFAULT, quotas.of("default", DEFAULT), lambda: used)
    assert verdict.allowed == (not words) and words in verdict.message
    assert quotas.of("other", DEFAULT) == []


def test_the_largest_init_container_counts_where_it_is_larger() -> None:
    quotas = Quotas()
    hard = {"limits.nvidia.com/gpumem": 999}
    quotas.seen({"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}})
    pod = gpu_pod(gpumem=500)
    big = {"name": "init", "image": "x", "resources": {"limits": {"nvidia.com/gpumem": "1000"}}}
    pod["spec"]["initContainers"] = [big]
    assert "the pod asks 1000" in review(pod, DEFAULT, quotas.of("default", DEFAULT)).message
    big["restartPolicy"] = "Always"
    assert "the pod asks 1500" in review(pod, DEFAULT, quotas.of("default", DEFAULT)).message


def asked_for(**changes: Any) -> Asked:
    return msgspec.convert({"uid": "u", "object": gpu_pod(), "operation": "CREATE", **changes}, Asked)


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
