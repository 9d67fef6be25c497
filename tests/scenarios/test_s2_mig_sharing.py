"""S2.3, S2.5 and S2.7: MIG devices as GPUs and in replicas, with the document's ConfigMap and policy, on two A100.

The document asks two replicas of each profile and shows four 3g.20gb on two GPUs, as without; with them they are 8.
"""

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.scenarios import mig_sharing
from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Lab
from tests.scenarios.mig_sharing import CONFIG, HALF, labelled, labels, partition, strategy
from tests.scenarios.nvidia import (
    GPU,
    config_map,
    label,
    offers,
    pod,
    publish,
    use,
    visible,
)
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def a100_lab(start_lab: StartLab) -> Lab:
    lab = start_lab("migshare", *TABLE["S2 MIG labels"].options)
    lab.apply(config_map("mig-profiles-config"))
    use(lab, {"name": "mig-profiles-config"})
    return lab


@pytest.fixture
def lab(a100_lab: Lab) -> Iterator[Lab]:
    yield a100_lab
    a100_lab.delete_workloads()


def gives_out_gpus(lab: Lab) -> bool:
    """Whether the node tells that it places no shares."""
    spec = json.loads(lab.kubectl("get", "inventory", lab.node, "-o", "json"))["spec"]
    return [each["resource"] for each in spec.get("nativeResources", ())] == [GPU]


def runs(lab: Lab, *names: str) -> list[str]:
    for name in names:
        lab.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s")
    return [visible(lab, name) for name in names]


test_s2_5_single_of_the_policy_holds_without_a_configuration_of_the_plugin = (
    mig_sharing.test_s2_5_single_of_the_policy_holds_without_a_configuration_of_the_plugin
)


def test_s2_7_single_in_replicas_doubles_the_gpus(lab: Lab) -> None:
    label(lab, CONFIG)
    offers(lab, {GPU: 28})
    labelled(lab, {
        "nvidia.com/gpu.product": f"{CONFIG}-MIG-1g.5gb-SHARED", "nvidia.com/gpu.replicas": "2",
        "nvidia.com/gpu.count": "14", "nvidia.com/gpu.sharing-strategy": "time-slicing",
    })  # fmt: skip


test_s2_5_unequally_partitioned_gpus_are_invalid_in_single = (
    mig_sharing.test_s2_5_unequally_partitioned_gpus_are_invalid_in_single
)


def test_s2_7_mixed_in_replicas_doubles_each_profile(lab: Lab) -> None:
    strategy(lab, "mixed")
    offers(lab, {"nvidia.com/mig-1g.5gb": 8, "nvidia.com/mig-2g.10gb": 4, HALF: 4})
    partition(lab, "all-3g.20gb")
    offers(lab, {HALF: 8})
    labelled(lab, {
        "nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.replicas": "0", "nvidia.com/gpu.count": "2",
        f"{HALF}.slices.gi": "3", f"{HALF}.count": "4", f"{HALF}.replicas": "2",
        f"{HALF}.product": f"{CONFIG}-MIG-3g.20gb-SHARED", "nvidia.com/mig.config.state": "success",
    })  # fmt: skip
    assert not any("mig-1g.5gb" in name for name in labels(lab)), "labels go with their profiles"
    names = [f"half-{number}" for number in range(8)]
    for name in names:
        lab.apply(pod(name, resource=HALF))
    seen = Counter(runs(lab, *names))
    assert sorted(seen.values()) == [2, 2, 2, 2], "each device twice"
    lab.apply(pod("one-more", resource=HALF))
    wait_until(
        lambda: f"Insufficient {HALF}" in lab.lamina("why", "one-more").stdout,
        lambda: lab.lamina("why", "one-more").stdout,
    )


def test_s2_7_the_example(lab: Lab) -> None:
    lab.kubectl("apply", "-f", str(EXAMPLES / "nvidia" / "mig-replicas.yaml"))
    label(lab, "mig-twice")
    offers(lab, {HALF: 8})


test_s2_3_without_mig_the_labels_are_those_of_gpus_again = (
    mig_sharing.test_s2_3_without_mig_the_labels_are_those_of_gpus_again
)


def test_s3_1_lists_of_devices_by_index_and_by_mounts(lab: Lab) -> None:
    def listing(strategy: str) -> str:
        plugin = {"deviceListStrategy": strategy, "deviceIDStrategy": "index", "passDeviceSpecs": True}
        return json.dumps({"version": "v1", "flags": {"plugin": plugin, "gdsEnabled": True}})

    names = ("volume-mounts", "envvar", "cdi-cri")
    publish(lab, "lists", {name: listing(name) for name in names})
    use(lab, {"name": "lists"})
    for name in names:
        label(lab, name)
        offers(lab, {GPU: 2})
        wait_until(lambda: gives_out_gpus(lab), lambda: lab.kubectl("get", "inventory", lab.node, "-o", "json"))
        lab.apply(pod(f"by-{name}", "sh", "-c", "nvidia-smi -L; echo gds $NVIDIA_GDS"))
        wait_until(lambda: lab.phases() == {"Succeeded": 1}, lambda: lab.kubectl("describe", "pods"))
        log = lab.kubectl("logs", f"by-{name}")
        assert log.count("GPU 0: NVIDIA A100") == 1
        assert "gds enabled" in log
        assert "GPU 1" not in log
        lab.delete_workloads()
    label(lab, "")
