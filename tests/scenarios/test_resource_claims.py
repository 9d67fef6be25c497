"""ResourceClaims in a lab: allocated by the scheduler from the agent's slices, prepared by the agent, and enforced."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.scenarios.examples import EXAMPLES, running, smi
from tests.scenarios.examples import apply as apply_example
from tests.scenarios.labs import Lab, Object
from tests.scenarios.resource_claims import (
    ALLOCATE,
    GIB,
    OUT_OF_MEMORY,
    allocate,
    amounts,
    apply,
    claim,
    delete_claims,
    exactly,
    results,
    share,
    slices,
    user,
)
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until

ROWS = TABLE["claims"]
MORE = {"limits.nvidia.com/gpumem": "6000"}


@pytest.fixture
def lab(served: Lab) -> Iterator[Lab]:
    yield served
    delete_claims(served)


globals().update(ROWS.tests)


@contextmanager
def holding(lab: Lab, pod: str, container: str, size: int) -> Iterator[None]:
    """A program in the container has allocated so much for as long as the block runs."""
    script = ALLOCATE.format(sizes=(size,), then="import time; time.sleep(600)", gpu=0)
    command = [lab.kubectl_path, "exec", pod, "-c", container, "--", "python3", "-c", script]
    program = subprocess.Popen(
        command, env=lab.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert program.stdout is not None and program.stdout.readline() == "0\n"
        yield
    finally:
        program.kill()
        program.communicate()


def made(lab: Lab, name: str, **requests: str) -> None:
    share(lab, name, **requests)
    running(lab, name)


def test_a_claim_with_limits_borrows_until_a_neighbor_needs_its_guarantee(lab: Lab) -> None:
    apply_example(lab, "dra/limits")
    running(lab, "limited-claim")
    assert allocate(lab, "limited-claim", 20 * GIB, 4 * GIB) == ["0", OUT_OF_MEMORY]
    made(lab, "neighbor", memory="23Gi", cores="80")
    with holding(lab, "limited-claim", "main", 20 * GIB):
        assert allocate(lab, "neighbor", 20 * GIB) == ["0"], "what is guaranteed is there"
    lab.kubectl("delete", "pod", "limited-claim", "--grace-period=1")


def test_limits_that_a_claim_cannot_have_are_refused_in_the_pods_events(lab: Lab) -> None:
    manifest = (EXAMPLES / "dra" / "limits.yaml").read_text()
    lab.apply(manifest.replace("memory: 24Gi", "memory: 4Gi"))
    sentence = "request gpu: the limit of memory must be at least its request, 8192 MiB"
    wait_until(
        lambda: sentence in lab.kubectl("describe", "pod", "limited-claim"),
        lambda: lab.kubectl("describe", "pod", "limited-claim"),
    )


def test_a_container_has_the_limits_of_each_of_its_requests(lab: Lab) -> None:
    apply_example(lab, "dra/several")
    running(lab, "several-shares")
    shown = smi(lab, "several-shares", "-c", "both")
    assert ("/  4096MiB" in shown, "/  8192MiB" in shown) == (True, True)
    shown = smi(lab, "several-shares", "-c", "one")
    assert ("/  4096MiB" in shown, "/  8192MiB" in shown) == (True, False)
    with holding(lab, "several-shares", "one", 3 * GIB):
        answers = [allocate(lab, "several-shares", 2 * GIB, container="both", gpu=gpu) for gpu in (0, 1)]
    assert sorted(answers) == [["0"], [OUT_OF_MEMORY]], "they share the 4 GiB, and the other GPU has room"


def test_a_container_may_use_several_claims(lab: Lab) -> None:
    pod = user("two-claims", "first")
    pod["spec"]["resourceClaims"].append({"name": "more", "resourceClaimName": "second"})
    pod["spec"]["containers"][0]["resources"]["claims"].append({"name": "more"})
    first, second = (exactly(**amounts(memory=memory)) for memory in ("3Gi", "29Gi"))
    apply(lab, claim("first", first), claim("second", second), pod)
    running(lab, "two-claims")
    assert allocate(lab, "two-claims", 31 * GIB) == ["0"], "both claims have shares of one GPU"


def test_programs_of_a_claim_by_mps_have_limits_each(lab: Lab) -> None:
    apply_example(lab, "dra/mps")
    running(lab, "mps-claim")
    assert allocate(lab, "mps-claim", 9 * GIB, 2 * GIB, container="two") == ["0", OUT_OF_MEMORY]
    with holding(lab, "mps-claim", "one", 9 * GIB):
        assert allocate(lab, "mps-claim", 9 * GIB, 2 * GIB, container="two") == ["0", OUT_OF_MEMORY]
    load = lab.kubectl("exec", "mps-claim", "-c", "one", "--", "gpu-load", "--seconds", "1")
    found = re.search(r"GPU 0: ([0-9.]+) %", load)
    assert found is not None and 25 <= float(found[1]) <= 51, load  # a busy machine takes some
    mode = ["nvidia-smi", "--query-gpu=compute_mode", "--format=csv,noheader"]
    assert lab.kubectl("exec", "mps-claim", "-c", "one", "--", *mode).strip() == "Exclusive_Process"


def test_a_share_by_mps_keeps_its_limit(lab: Lab) -> None:
    config = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", "sharing": {"strategy": "MPS"}}
    entry = {"opaque": {"driver": "gpu.nvidia.com", "parameters": config}}
    by_mps = claim("mps-share", exactly(**amounts(memory="4Gi")), config=[entry])
    apply(lab, by_mps, user("mps-share", "mps-share"))
    made(lab, "neighbor", memory="4Gi")
    running(lab, "mps-share")
    assert allocate(lab, "mps-share", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]
    assert allocate(lab, "neighbor", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]


def test_what_claims_have_is_free_again_when_their_pods_have_ended(lab: Lab) -> None:
    made(lab, "first", memory="30Gi")
    made(lab, "second", memory="30Gi")
    lab.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    lab.kubectl("delete", "resourceclaims", "--all")
    made(lab, "third", memory="30Gi")
    made(lab, "fourth", memory="30Gi")
    assert allocate(lab, "fourth", 29 * GIB) == ["0"]


def test_pods_show_the_health_of_their_gpus_and_unhealthy_ones_are_not_allocated(lab: Lab) -> None:
    made(lab, "claimed", memory="1Gi")

    def health() -> Object:
        [container] = lab.read("/api/v1/namespaces/default/pods/claimed")["status"]["containerStatuses"]
        [resource] = [each for listed in container["allocatedResourcesStatus"] for each in listed["resources"]]
        return {key: resource.get(key) for key in ("health", "message")}

    def taints() -> list[Object]:
        return [
            taint for each in slices(lab) for device in each["spec"]["devices"] for taint in device.get("taints", ())
        ]

    well = {"health": "Healthy", "message": None}
    wait_until(lambda: health() == well, lambda: str(health()))
    [name] = [each["device"] for each in results(lab, "claimed")]
    assert lab.lamina("lab", "fault", "lose", "--gpu", name.removeprefix("gpu-"), "--name", lab.name).returncode == 0
    lost = {"health": "Unhealthy", "message": "the GPU does not answer NVML"}
    wait_until(lambda: health() == lost, lambda: str(health()))
    wait_until(lambda: [each["key"] for each in taints()] == ["gpu.nvidia.com/gpu-lost"], lambda: str(taints()))
    made(lab, "next", memory="1Gi")
    assert [each["device"] for each in results(lab, "next")] != [name]
    assert lab.lamina("lab", "fault", "restore", "--gpu", name.removeprefix("gpu-"), "--name", lab.name).returncode == 0
    wait_until(lambda: (health(), taints()) == (well, []), lambda: str((health(), taints())))


def test_a_rule_evicts_the_pods_of_a_gpu_and_keeps_claims_away(lab: Lab) -> None:
    made(lab, "claimed", memory="1Gi")
    [name] = [each["device"] for each in results(lab, "claimed")]
    taint = {"key": "example.com/repair", "effect": "NoExecute"}
    spec = {"deviceSelector": {"pool": lab.node, "device": name}, "taint": taint}
    rule = {"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": {"name": "repair"}}
    lab.apply(json.dumps(rule | {"spec": spec}))
    wait_until(lambda: lab.phases() == {}, lambda: lab.kubectl("get", "pods"))
    done = "condition=EvictionInProgress=false"
    lab.kubectl("wait", f"--for={done}", "devicetaintrules/repair", "--timeout=30s")
    made(lab, "other", memory="1Gi")
    assert [each["device"] for each in results(lab, "other")] != [name]
    sentence = f"DeviceTaintRule repair taints 1 device of {lab.node} with example.com/repair:NoExecute"
    assert sentence in lab.lamina("doctor", "--all").stdout
    share(lab, "whole")
    wait_until(lambda: sentence in lab.lamina("why", "whole").stdout, lambda: lab.lamina("why", "whole").stdout)
    lab.kubectl("delete", "devicetaintrules", "repair")
    running(lab, "whole")
    assert sentence not in lab.lamina("why", "whole").stdout + lab.lamina("doctor", "--all").stdout


def test_commands_know_what_claims_hold(lab: Lab) -> None:
    made(lab, "claimed", memory="4Gi", cores="30")

    def rows() -> list[Object]:
        listed: list[Object] = json.loads(lab.lamina("gpus", "-o", "json", "--sort", "granted").stdout)
        return listed

    wait_until(lambda: rows()[0]["mode"] == "claims", lambda: str(rows()))
    first, second = rows()
    gpus = lab.read(f"/apis/lamina.dev/v1alpha1/inventories/{lab.node}")["spec"]["gpus"]
    assert [gpu.get("mode") for gpu in (gpus[first["index"]], gpus[second["index"]])] == ["timeslice", None]
    assert (first["memoryGrantedMib"], first["computeGrantedPercent"], first["pods"]) == (4096, 30, ["default/claimed"])
    assert (second["mode"], second["pods"]) == ("idle", [])
    listed = lab.lamina("pods").stdout.splitlines()
    held = [str(first["index"]), "4096", "MiB", "0", "MiB", "0", "MiB", "30", "%,", "cap"]
    assert listed[1].split() == ["claimed", "Running", "node-0", *held]
    refused = lab.lamina("reset", "--yes")
    assert refused.returncode == 2 and "1 pod uses GPUs: default/claimed" in refused.stderr
    found = lab.lamina("doctor", "--all").stdout
    assert "devices are offered to claims" in found and "other drivers for claims" in found


def test_a_quota_counts_what_claims_hold_and_stops_the_next(lab: Lab) -> None:
    spec = {"hard": {"limits.nvidia.com/gpumem": "5000"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": spec}
    lab.apply(json.dumps(quota))
    try:
        made(lab, "claimed", memory="4Gi")
        used = ["default", "team", "nvidia.com/gpumem", "4096", "5000"]
        listed = lambda: [line.split() for line in lab.lamina("quotas").stdout.splitlines()]  # noqa: E731
        wait_until(lambda: used in listed(), lambda: str(listed()))
        share(lab, "over", memory="1Gi")
        expected = "quota team allows 5000 of nvidia.com/gpumem; 4096 are used and claim default/over requests 1024"
        wait_until(
            lambda: expected in lab.kubectl("describe", "pod", "over"), lambda: lab.kubectl("describe", "pod", "over")
        )
        lab.kubectl("patch", "resourcequota", "team", "-p", json.dumps({"spec": {"hard": spec["hard"] | MORE}}))
        running(lab, "over")
    finally:
        lab.kubectl("delete", "resourcequota", "team")
