"""What some examples do beyond what their first lines say, which `test_examples_as_written` checks of all."""

from tests.scenarios.examples import EXAMPLES, apply, running, smi
from tests.scenarios.labs import Lab
from tests.waiting import wait_until


def test_a_whole_gpu_is_exclusive_and_has_no_facade(lab: Lab) -> None:
    apply(lab, "whole-gpu")
    running(lab, "whole-gpu")
    assert "0MiB / 32768MiB" in smi(lab, "whole-gpu")
    assert "LD_PRELOAD" not in lab.kubectl("exec", "whole-gpu", "--", "env")
    apply(lab, "memory-and-compute")
    lab.settled("app=memory-and-compute", {"Pending": 7, "Running": 3})


def test_several_gpus_are_different_ones(lab: Lab) -> None:
    apply(lab, "several-gpus")
    running(lab, "several-gpus")
    listed = lab.kubectl("exec", "several-gpus", "--", "nvidia-smi", "-L").splitlines()
    assert len(listed) == 2
    assert listed[0].split("UUID")[1] != listed[1].split("UUID")[1]
    assert smi(lab, "several-gpus").count("0MiB /  4000MiB") == 2


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
