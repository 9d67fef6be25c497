"""S3.6, S3.7: one T4 offered twice, its time measured on the simulated GPU, the length of turns, halves of its memory.

Both programs ask for GPU time many seconds ahead, so the GPU's own account of who got what does not depend on how soon
this machine lets them run.
"""

import contextlib
import json
import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Lab
from tests.scenarios.nvidia import GPU, node_events, offers, pod, visible
from tests.scenarios.one_gpu import PODS, busy, gpu, measure
from tests.seeds import piped, seed
from tests.waiting import wait_until

EXAMPLE = (EXAMPLES / "configuration" / "v1alpha1" / "time-slice.yaml").read_text()
CONFIG = EXAMPLE.replace("  timeSlice: long\n", "")
GEMM = ("gpu-load", "--kernel-ms", "3000", "--seconds", "600")
"""Thirty seconds of work at a time."""


@pytest.fixture(scope="module")
def t4(start_lab: StartLab) -> Lab:
    """A node with one T4."""
    lab = start_lab("twice", "--gpu", "T4", "--gpus-per-node", "1", config=EXAMPLE)
    offers(lab, {GPU: 2})
    return lab


@pytest.fixture(scope="module")
def gemm(t4: Lab) -> Iterator[Lab]:
    """The document's two pods, each with a program that never stops multiplying in place of its own."""
    text = next(text for text in piped(seed("003")) if PODS[0] in text)
    manifest, count = re.subn(r"args: .*", "command: [sleep, infinity]", text)
    assert count == 2
    t4.apply(manifest)
    wait_until(lambda: t4.phases() == {"Running": 2}, lambda: t4.kubectl("describe", "pods"))
    with contextlib.ExitStack() as running:
        for name in PODS:
            command = [t4.kubectl_path, "exec", name, "--", *GEMM]
            running.callback(running.enter_context(subprocess.Popen(command, env=t4.environment)).kill)
        wait_until(lambda: busy(gpu(t4)), lambda: str(gpu(t4)))
        yield t4
    t4.delete_workloads()


def configure(lab: Lab, more: str = "") -> None:
    patch = json.dumps({"data": {"lamina.yaml": CONFIG + more}})
    lab.kubectl("patch", "configmap", "lamina", "-n", "lamina-system", "--type=merge", "-p", patch)


def slices(lab: Lab) -> tuple[str, str]:
    """The length of turns as the inventory has it, and as the GPU has it."""
    (found,) = json.loads(lab.kubectl("get", "inventory", lab.node, "-o", "json"))["spec"]["gpus"]
    reported = lab.kubectl("exec", PODS[0], "--", "nvidia-smi", "compute-policy", "--list")
    return found.get("timeSlice", ""), re.findall(r"Timeslice +(\w+)", reported)[0]


def test_s3_6_two_programs_on_one_gpu_get_half_of_its_time_each(gemm: Lab) -> None:
    assert visible(gemm, PODS[0]) == visible(gemm, PODS[1]) != ""
    configure(gemm)
    wait_until(lambda: slices(gemm) == ("", "Default"), lambda: str(slices(gemm)))
    shares, turn = measure(gemm)
    assert shares == pytest.approx([0.5, 0.5], abs=0.02)
    assert turn == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize(("word", "milliseconds"), [("long", 10), ("short", 1)])
def test_s3_7_the_configuration_sets_the_length_of_turns(gemm: Lab, word: str, milliseconds: float) -> None:
    configure(gemm, f"  timeSlice: {word}\n")
    wait_until(lambda: slices(gemm) == (word, word.capitalize()), lambda: str(slices(gemm)))
    shares, turn = measure(gemm)
    assert shares == pytest.approx([0.5, 0.5], abs=0.02)
    assert turn == pytest.approx(milliseconds, rel=0.05)
    assert node_events(gemm, "TimeSliceFailed") == []


def test_s3_7_a_node_has_its_own_and_gives_it_back(gemm: Lab) -> None:
    configure(gemm, "  timeSlice: long\nnodes: {overrides: [{name: node-0, timeSlice: medium}]}\n")
    wait_until(lambda: slices(gemm) == ("medium", "Medium"), lambda: str(slices(gemm)))
    configure(gemm)
    wait_until(lambda: slices(gemm) == ("", "Default"), lambda: str(slices(gemm)))


def test_s3_6_two_pods_run_on_one_gpu_each_with_half_of_its_memory(t4: Lab) -> None:
    t4.delete_workloads()
    configure(t4, "  replicaMemory: equal\n")
    offers(t4, {GPU: 2})
    wait_until(lambda: limited(t4), lambda: "replicas are not held to half of the memory")
    assert visible(t4, "one") == visible(t4, "other") != ""
    t4.apply(pod("third"))
    wait_until(lambda: "all 2 nvidia.com/gpu are allocated" in t4.lamina("why", "third").stdout, lambda: "no reason")


def limited(lab: Lab) -> bool:
    """Whether two new pods each see half of the memory. A pod that started before the agent knew sees all of it."""
    for name in ("one", "other"):
        lab.apply(pod(name))
    lab.settled("app=counting", {"Running": 2})
    seen = [lab.kubectl("exec", name, "--", "nvidia-smi") for name in ("one", "other")]
    well = all(re.search(r"0MiB / +7680MiB", each) for each in seen)
    if not well:
        lab.delete_workloads()
    return well
