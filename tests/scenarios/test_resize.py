"""`examples/resize.yaml`: a program that runs in a pod gets more and less memory without a restart."""

import subprocess

from tests.scenarios.examples import apply, running, smi
from tests.scenarios.labs import Lab
from tests.waiting import wait_until

POD = "resize"


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
    assert resize(lab, "--memory", "500").returncode == 0
    wait_until(lambda: "0MiB /   500MiB" in smi(lab, POD), lambda: smi(lab, POD))
