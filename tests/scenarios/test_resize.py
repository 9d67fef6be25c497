"""`examples/resize.yaml`: a program that runs in a pod gets more and less memory without a restart."""

import subprocess

from tests.scenarios.examples import apply, running, smi
from tests.scenarios.labs import Lab
from tests.waiting import wait_until

POD, DEPLOYMENT = "resize", "resize-deployment"


def resize(lab: Lab, *arguments: str) -> subprocess.CompletedProcess[str]:
    return lab.lamina("resize", POD, *arguments, "--wait")


def test_a_running_pod_is_resized(lab: Lab) -> None:
    apply(lab, POD)
    running(lab, POD)
    done = resize(lab, "--memory", "9000", "--cores", "30")
    assert (done.returncode, done.stdout) == (0, f"Pod default/{POD}: done main=9000,30.\n"), done.stderr
    wait_until(lambda: "0MiB /  9000MiB" in smi(lab, POD), lambda: smi(lab, POD))
    refused = resize(lab, "--memory", "90000")
    assert refused.returncode == 2 and "is not resized" in refused.stderr, refused.stderr
    (pod,) = lab.pods()
    assert ",NVIDIA,9000,30:;" in pod["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"]
    assert resize(lab, "--memory", "500").returncode == 0
    wait_until(lambda: "0MiB /   500MiB" in smi(lab, POD), lambda: smi(lab, POD))


def test_a_deployment_is_resized_without_a_new_pod(lab: Lab) -> None:
    apply(lab, DEPLOYMENT)
    wait_until(lambda: len(ready(lab)) == 2, lambda: str(lab.pods()))
    before = ready(lab)
    done = lab.lamina("resize", f"deployment/{DEPLOYMENT}", "--memory", "3000", "--wait")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 3, done.stderr
    assert lines[-1] == f"The template of Deployment {DEPLOYMENT} has the new size. No pod was replaced."
    assert ready(lab) == before
    lab.kubectl("scale", f"deployment/{DEPLOYMENT}", "--replicas=3")
    wait_until(lambda: len(ready(lab)) == 3, lambda: str(lab.pods()))
    assert before < ready(lab)
    for pod in ready(lab):
        wait_until(lambda pod=pod: "0MiB /  3000MiB" in smi(lab, pod), lambda pod=pod: smi(lab, pod))  # type: ignore[misc]


def ready(lab: Lab) -> set[str]:
    """The names of the pods that run."""
    return {pod["metadata"]["name"] for pod in lab.pods() if pod["status"].get("phase") == "Running"}
