"""Tests of shares and whole GPUs by ResourceClaims that run on a lab and on the test cluster."""

import json
import re

from tests.scenarios.examples import running, smi
from tests.scenarios.labs import Cluster
from tests.scenarios.nvidia import pod
from tests.scenarios.resource_claims import (
    CLASS,
    GIB,
    MIG_CLASS,
    OUT_OF_MEMORY,
    allocate,
    amounts,
    apply,
    claim,
    devices,
    exactly,
    on,
    results,
    seen,
    share,
    unallocated,
    user,
)
from tests.waiting import wait_until


def test_a_claim_of_4_gib_gets_out_of_memory_at_4_gib(lab: Cluster) -> None:
    share(lab, "four", memory="4Gi", cores="30")
    running(lab, "four")
    assert allocate(lab, "four", 3 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]
    assert re.search(r" 0MiB / +4096MiB", smi(lab, "four"))


def test_containers_and_pods_of_one_claim_share_one_limit(lab: Cluster) -> None:
    share(lab, "first", memory="4Gi", containers=2)
    apply(lab, user("second", "first"))
    running(lab, "first", "second")
    assert seen(lab, "first") == seen(lab, "first", "c1") == seen(lab, "second")
    assert allocate(lab, "second", 3 * GIB) == ["0"], "nothing is taken yet"
    apply(lab, user("holder", "first", "gpu-load", "--memory-mib", "2000", "--seconds", "3600"))
    running(lab, "holder")
    wait_until(lambda: allocate(lab, "first", 3 * GIB) == [OUT_OF_MEMORY], "the holder takes nothing")
    for name, container in (("first", "c1"), ("second", "main")):
        assert allocate(lab, name, 3 * GIB, container=container) == [OUT_OF_MEMORY]
        assert allocate(lab, name, GIB, container=container) == ["0"]


def test_only_the_container_with_the_claim_sees_a_gpu(lab: Cluster) -> None:
    """The steps by which Kubernetes AI Conformance tests secure access to accelerators."""
    secure, plain = user("secure", "secure"), user("plain", "secure")
    other = {"name": "other", "image": "ubuntu", "command": ["sleep", "infinity"]}
    secure["spec"]["containers"].append(other)
    plain["spec"] = {"terminationGracePeriodSeconds": 0, "containers": [other]}
    apply(lab, claim("secure", exactly()), secure, plain)
    running(lab, "secure", "plain")
    assert len(seen(lab, "secure")) == 1
    for name in ("secure", "plain"):
        assert "GPU-" not in lab.kubectl("exec", name, "-c", "other", "--", "nvidia-smi", "-L", check=False)
        script = "ls /dev/nvidia* 2>/dev/null || echo none"
        assert lab.kubectl("exec", name, "-c", "other", "--", "sh", "-c", script) == "none\n"


def test_a_whole_gpu_has_no_facade_and_no_other_user(lab: Cluster) -> None:
    for name in ("one", "two"):
        share(lab, name, node=lab.node)
    running(lab, "one", "two")
    gpu, *_ = lab.read(f"/apis/lamina.dev/v1alpha1/inventories/{lab.node}")["spec"]["gpus"]
    assert allocate(lab, "one", (gpu["memoryMiB"] << 20) - GIB) == ["0"]
    assert lab.kubectl("exec", "one", "--", "sh", "-c", "ls -d /run/lamina || echo none") == "none\n"
    assert [len(seen(lab, name)) for name in ("one", "two")] == [1, 1] and seen(lab, "one") != seen(lab, "two")
    share(lab, "three", node=lab.node, memory="1Gi")
    wait_until(lambda: unallocated(lab, "three"), lab.described)


def test_a_gpu_of_a_claim_takes_no_grant_and_the_reverse(lab: Cluster) -> None:
    share(lab, "claimed", node=lab.node, memory="1Gi")
    running(lab, "claimed")
    for name, count in (("both", 2), ("granted", 1)):
        apply(lab, on(json.loads(pod(name, count=count, **{"nvidia.com/gpumem": 1000})), lab.node))
    running(lab, "granted")
    assert not {*seen(lab, "claimed")} & {*seen(lab, "granted")}
    wait_until(lambda: len(devices(lab, lab.node)) == 1, lambda: str(devices(lab, lab.node)))
    share(lab, "whole", node=lab.node)
    wait_until(lambda: unallocated(lab, "whole"), lab.described)
    lab.settled("", {"Pending": 2, "Running": 2})


def test_the_first_available_alternative_is_served(lab: Cluster) -> None:
    alternatives = [
        {"name": "partition", "deviceClassName": MIG_CLASS},
        {"name": "share", "deviceClassName": CLASS, **amounts(memory="10Gi")},
    ]
    apply(lab, claim("either", {"firstAvailable": alternatives}), user("either", "either"))
    running(lab, "either")
    assert [each["request"] for each in results(lab, "either")] == ["gpu-0/share"]
    assert allocate(lab, "either", 9 * GIB, 2 * GIB) == ["0", OUT_OF_MEMORY]
