"""Tests of the configuration of NVIDIA's device plugin that run on a lab and on the test cluster."""

import json

import pytest

from tests.scenarios.labs import Lab
from tests.scenarios.nvidia import (
    GPU,
    SHARED,
    label,
    offers,
    pod,
    publish,
    replicas,
    use,
    visible,
)
from tests.waiting import wait_until

APP = "app=counting"
MAP = "device-plugin-configs"


def test_s3_2_the_label_chooses_among_named_configs(lab: Lab) -> None:
    publish(lab, MAP, {"default": json.dumps({"version": "v1"}), "a100-80gb-config": replicas(5)})
    use(lab, {"name": MAP, "default": "default"})
    offers(lab, {GPU: 8})
    label(lab, "a100-80gb-config")
    offers(lab, {GPU: 40})
    label(lab, "")
    offers(lab, {GPU: 8})
    use(lab, {"name": MAP, "default": ""})


@pytest.mark.parametrize(("rename", "expected"), [(False, {GPU: 40}), (True, {SHARED: 40})])
def test_s3_3_and_s3_5_five_replicas_of_eight_gpus(lab: Lab, rename: bool, expected: dict[str, int]) -> None:
    publish(lab, MAP, {"five": replicas(5, renameByDefault=rename)})
    label(lab, "five")
    offers(lab, expected)
    [resource] = expected
    lab.apply(pod("one", resource=resource))
    lab.settled(APP, {"Running": 1})
    assert visible(lab, "one").startswith("GPU-")

    def labels() -> tuple[str, bool]:
        """S3.5: replicas always, -SHARED only without a new name."""
        found = json.loads(lab.kubectl("get", "node", lab.node, "-o", "json"))["metadata"]["labels"]
        return found.get("nvidia.com/gpu.replicas", ""), found.get("nvidia.com/gpu.product", "").endswith("-SHARED")

    wait_until(lambda: labels() == ("5", not rename), lambda: str(labels()))


def test_s3_4_more_than_one_replica_is_refused_in_nvidias_words(lab: Lab) -> None:
    publish(lab, MAP, {"one": replicas(5, failRequestsGreaterThanOne=True)})
    label(lab, "one")
    offers(lab, {GPU: 40})
    lab.apply(pod("greedy", count=2))
    wait_until(lambda: lab.phases(APP) == {"Failed": 1}, lambda: lab.kubectl("describe", "pods"))
    status = lab.pods(APP)[0]["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert (
        'invalid allocation request for "nvidia.com/gpu": invalid request: '
        "maximum request size for shared resources is 1; found 2"
    ) in status["message"]
