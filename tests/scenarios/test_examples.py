"""Every manifest of examples/ does what its first lines say."""

import subprocess

from tests.scenarios.examples import EXAMPLES, apply, grant_of, running, smi
from tests.scenarios.labs import Lab
from tests.waiting import wait_until


def test_memory_and_compute(lab: Lab) -> None:
    apply(lab, "memory-and-compute")
    lab.settled("app=memory-and-compute", {"Pending": 4, "Running": 6})
    assert "0MiB / 10000MiB" in smi(lab, "deploy/memory-and-compute")


def test_memory_percentage(lab: Lab) -> None:
    apply(lab, "memory-percentage")
    running(lab, "memory-percentage")
    assert "0MiB /  8192MiB" in smi(lab, "memory-percentage")


def test_a_whole_gpu_is_exclusive_and_has_no_facade(lab: Lab) -> None:
    apply(lab, "whole-gpu")
    running(lab, "whole-gpu")
    assert "0MiB / 32768MiB" in smi(lab, "whole-gpu")
    assert "LD_PRELOAD" not in lab.kubectl("exec", "whole-gpu", "--", "env")
    apply(lab, "memory-and-compute")
    lab.settled("app=memory-and-compute", {"Pending": 7, "Running": 3})


def test_volcano(lab: Lab) -> None:
    apply(lab, "volcano")
    running(lab, "volcano-vgpu")
    assert "0MiB /  3000MiB" in smi(lab, "volcano-vgpu")


def test_cce(lab: Lab) -> None:
    apply(lab, "cce")
    running(lab, "cce-split")
    assert smi(lab, "cce-split").count("0MiB /  5120MiB") == 2


def test_cce_fraction(lab: Lab) -> None:
    apply(lab, "cce-fraction")
    running(lab, "cce-fraction")
    assert "0MiB /  3276MiB" in smi(lab, "cce-fraction")
    lab.settled("app=cce-fraction", {"Running": 2})
    assert "0MiB /  8192MiB" in smi(lab, "deploy/cce-fraction")


def test_several_gpus_are_different_ones(lab: Lab) -> None:
    apply(lab, "several-gpus")
    running(lab, "several-gpus")
    listed = lab.kubectl("exec", "several-gpus", "--", "nvidia-smi", "-L").splitlines()
    assert len(listed) == 2
    assert listed[0].split("UUID")[1] != listed[1].split("UUID")[1]
    assert smi(lab, "several-gpus").count("0MiB /  4000MiB") == 2


def test_choice_of_gpu_and_policy_and_priority(lab: Lab) -> None:
    for name in ("choose-gpu", "placement-policy", "priority"):
        apply(lab, name)
        running(lab, name)
    (container,) = grant_of(lab, "priority")["containers"]  # type: ignore[misc]
    assert container["priority"] == 1


def test_init_and_sidecar_share_a_gpu(lab: Lab) -> None:
    apply(lab, "init-and-sidecar")
    running(lab, "init-and-sidecar")
    assert "0MiB /  6000MiB" in lab.kubectl("logs", "init-and-sidecar", "-c", "prepare")
    assert "0MiB /  2000MiB" in smi(lab, "init-and-sidecar", "-c", "train")
    assert "0MiB /  1000MiB" in smi(lab, "init-and-sidecar", "-c", "watch")


def test_a_job_ends_and_its_share_is_free(lab: Lab) -> None:
    apply(lab, "job")
    lab.kubectl("wait", "--for=condition=Complete", "job/allocate-once", "--timeout=120s")
    assert "GPU is available" in lab.kubectl("logs", "job/allocate-once")
    apply(lab, "whole-gpu")
    lab.kubectl("apply", "-f", "-", stdin=SECOND_WHOLE)
    for name in ("whole-gpu", "second-whole"):
        running(lab, name)


def test_one_share_of_low_priority_is_evicted_and_no_more(lab: Lab) -> None:
    apply(lab, "preemption/low")
    lab.settled("app=batch", {"Running": 6})
    before = {pod["metadata"]["uid"] for pod in lab.pods("app=batch")}
    apply(lab, "preemption/high")
    running(lab, "urgent")
    lab.settled("app=batch", {"Pending": 1, "Running": 5})
    assert len(before & {pod["metadata"]["uid"] for pod in lab.pods("app=batch")}) == 5


def test_one_group_runs_whole_and_then_the_other(lab: Lab) -> None:
    apply(lab, "gang/definition")
    lab.kubectl("wait", "--for=condition=Established", "crd/podgroups.scheduling.x-k8s.io", "--timeout=120s")
    apply(lab, "gang/two-groups")
    both = "app in (red, blue)"
    lab.settled(both, {"Pending": 2, "Running": 2})
    [first] = {pod["metadata"]["labels"]["app"] for pod in lab.pods(both) if pod["status"]["phase"] == "Running"}
    second = "blue" if first == "red" else "red"
    lab.kubectl("delete", "replicaset", first, "--wait=false")
    lab.settled(f"app={second}", {"Running": 2})
    lab.kubectl("delete", "podgroups", "--all")


def test_a_quota_is_enforced_and_its_use_is_reported(lab: Lab) -> None:
    apply(lab, "quota")
    lab.settled("app=quota", {"Pending": 1, "Running": 3})

    def reported() -> bool:
        rows = [line.split() for line in lab.kubectl("describe", "quota", "gpus").splitlines()]
        memory, cores = ["limits.nvidia.com/gpumem", "30k", "30k"], ["limits.nvidia.com/gpucores", "90", "100"]
        return memory in rows and cores in rows

    wait_until(reported, lambda: lab.kubectl("describe", "quota", "gpus"))
    rows = [line.split() for line in lab.lamina("quotas").stdout.splitlines()]
    assert ["default", "gpus", "nvidia.com/gpumem", "30000", "30000"] in rows
    lab.kubectl("delete", "resourcequota", "gpus")
    lab.settled("app=quota", {"Running": 4})


SECOND_WHOLE = (EXAMPLES / "whole-gpu.yaml").read_text().replace("name: whole-gpu", "name: second-whole")


def test_too_large_waits_and_says_for_what(lab: Lab) -> None:
    apply(lab, "too-large")

    def reported() -> bool:
        return "900000 MiB" in lab.kubectl("describe", "pod", "too-large")

    wait_until(reported, lambda: lab.kubectl("describe", "pod", "too-large"))


def test_the_memory_of_a_killed_process_comes_back(lab: Lab) -> None:
    lab.kubectl("apply", "-f", str(EXAMPLES / "memory-percentage.yaml"))
    running(lab, "memory-percentage")
    holder = (
        "import ctypes, time; cuda = ctypes.CDLL('libcuda.so.1'); cuda.cuInit(0); context = ctypes.c_void_p();"
        "cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0); cuda.cuCtxSetCurrent(context);"
        "block = ctypes.c_uint64(); size = ctypes.c_size_t(7000 << 20);"
        "print(cuda.cuMemAlloc_v2(ctypes.byref(block), size), flush=True);"
        "time.sleep({seconds})"
    )
    hold = ["exec", "memory-percentage", "--", "bash", "-c", f'echo $$; exec python3 -c "{holder.format(seconds=600)}"']
    held = subprocess.Popen(
        [lab.kubectl_path, *hold], env=lab.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert held.stdout is not None
    pid = int(held.stdout.readline())
    assert held.stdout.readline() == "0\n"
    again = ["exec", "memory-percentage", "--", "python3", "-c", holder.format(seconds=0)]
    assert lab.kubectl(*again, check=False).startswith("2\n")
    lab.kubectl("exec", "memory-percentage", "--", "bash", "-c", f"kill -9 {pid}")
    held.wait(10)
    assert lab.kubectl(*again).startswith("0\n")
