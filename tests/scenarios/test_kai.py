"""Manifests of KAI Scheduler run unchanged, with limits that hold, and contradictory ones are refused."""

from typing import Any

from tests.scenarios.examples import EXAMPLES, apply, grant_of, running, smi
from tests.scenarios.labs import Lab


def shares(lab: Lab, pod: str) -> list[tuple[str, int, int]]:
    """The container, MiB and percent of each share of the pod."""
    grant: dict[str, Any] = grant_of(lab, pod)
    assert grant["dialect"] == "kai"
    return [(one["name"], share["memoryMiB"], share["cores"]) for one in grant["containers"] for share in one["shares"]]


def test_pods_that_request_by_annotation_get_their_parts(lab: Lab) -> None:
    apply(lab, "kai-fraction")
    for pod in ("kai-fraction", "kai-memory", "kai-by-container"):
        running(lab, pod)
    assert shares(lab, "kai-fraction") == [("main", 16384, 50)]
    assert "0MiB / 16384MiB" in smi(lab, "kai-fraction")
    assert shares(lab, "kai-memory") == [("train", 2000, 0)] * 2
    assert smi(lab, "kai-memory", "-c", "train").count("0MiB /  2000MiB") == 2
    assert shares(lab, "kai-by-container") == [("main", 2048, 0), ("side", 1024, 0)]
    assert "0MiB /  1024MiB" in smi(lab, "kai-by-container", "-c", "side")
    unlimited = lab.kubectl("exec", "kai-memory", "-c", "main", "--", "nvidia-smi", check=False)
    assert "MiB /" not in unlimited, "a container that requests nothing sees no GPU"


def test_a_contradiction_is_refused_and_another_schedulers_pod_is_left_alone(lab: Lab) -> None:
    first = (EXAMPLES / "kai-fraction.yaml").read_text().split("---")[0]
    both = first.replace('gpu-fraction: "0.5"', 'gpu-fraction: "0.5"\n    gpu-memory: "2000"')
    answer = lab.kubectl("apply", "-f", "-", stdin=both, check=False)
    assert "annotations gpu-fraction and gpu-memory exclude each other; remove one of them" in answer
    foreign = first.replace("schedulerName: kai-scheduler", "schedulerName: theirs").replace('"0.5"', '"much"')
    lab.kubectl("apply", "-f", "-", stdin=foreign)
    (pod,) = lab.pods()
    assert "limits" not in pod["spec"]["containers"][0].get("resources", {})
