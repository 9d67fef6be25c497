"""S2.3, S2.5 and S2.7: MIG devices as GPUs and in replicas, with the document's ConfigMap and policy, on two A100.

The document asks two replicas of each profile and shows four 3g.20gb on two GPUs, as without; with them they are 8.
"""

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.scenarios.conftest import StartLab
from tests.scenarios.labs import Cluster, Lab, wait_for
from tests.scenarios.nvidia import (
    GPU,
    NAMESPACE,
    config_map,
    label,
    node_events,
    offers,
    pod,
    publish,
    use,
    visible,
)
from tests.scenarios.test_examples import EXAMPLES

CONFIG = "NVIDIA-A100-PCIE-40GB"
HALF = "nvidia.com/mig-3g.20gb"


@pytest.fixture(scope="module")
def a100_lab(start_lab: StartLab) -> Lab:
    lab = start_lab("migshare", "--gpu", "A100-PCIE-40GB")
    lab.apply(config_map("mig-profiles-config"))
    use(lab, {"name": "mig-profiles-config"})
    return lab


@pytest.fixture
def lab(a100_lab: Lab) -> Iterator[Lab]:
    yield a100_lab
    a100_lab.delete_workloads()


def strategy(lab: Cluster, name: str) -> None:
    """Replace the policy's strategy as the document does."""
    patch = json.dumps([{"op": "replace", "path": "/spec/mig/strategy", "value": name}])
    lab.kubectl("patch", "clusterpolicy/gpu-cluster-policy", "-n", NAMESPACE, "--type=json", "-p", patch)


def cut(lab: Cluster, name: str) -> None:
    lab.kubectl("label", "nodes", lab.node, f"nvidia.com/mig.config={name}", "--overwrite")


def labels(lab: Cluster) -> dict[str, str]:
    found = json.loads(lab.kubectl("get", "node", lab.node, "-o", "json"))["metadata"]["labels"]
    return {name: text for name, text in found.items() if name.startswith("nvidia.com/")}


def labelled(lab: Cluster, expected: dict[str, str]) -> None:
    wait_for(lambda: expected.items() <= labels(lab).items(), lambda: f"{labels(lab)}, expected {expected}")


def gives_out_gpus(lab: Lab) -> bool:
    """Whether the node tells that it places no shares."""
    spec = json.loads(lab.kubectl("get", "inventory", lab.node, "-o", "json"))["spec"]
    return [each["resource"] for each in spec.get("plain", ())] == [GPU]


def runs(lab: Lab, *names: str) -> list[str]:
    for name in names:
        lab.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s")
    return [visible(lab, name) for name in names]


def test_s2_5_single_of_the_policy_holds_without_a_configuration_of_the_plugin(lab: Lab) -> None:
    strategy(lab, "single")
    offers(lab, {GPU: 20})
    cut(lab, "all-1g.5gb")
    offers(lab, {GPU: 14})
    labelled(lab, {
        "nvidia.com/mig.strategy": "single", "nvidia.com/gpu.product": f"{CONFIG}-MIG-1g.5gb",
        "nvidia.com/gpu.count": "14", "nvidia.com/gpu.memory": "4864", "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.slices.gi": "1", "nvidia.com/gpu.multiprocessors": "14",
    })  # fmt: skip
    lab.apply((EXAMPLES / "mig-single.yaml").read_text())
    wait_for(lambda: lab.phases() == {"Succeeded": 1}, lambda: lab.kubectl("describe", "pods"))
    log = [" ".join(line.split()) for line in lab.kubectl("logs", "mig-single").splitlines()]
    assert log[0].startswith("GPU 0: NVIDIA A100-PCIE-40GB (UUID: GPU-")
    assert log[1].startswith("MIG 1g.5gb Device 0: (UUID: MIG-")
    assert lab.kubectl("get", "grants", "-o", "name") == ""


def test_s2_7_single_in_replicas_doubles_the_gpus(lab: Lab) -> None:
    label(lab, CONFIG)
    offers(lab, {GPU: 28})
    labelled(lab, {
        "nvidia.com/gpu.product": f"{CONFIG}-MIG-1g.5gb-SHARED", "nvidia.com/gpu.replicas": "2",
        "nvidia.com/gpu.count": "14", "nvidia.com/gpu.sharing-strategy": "time-slicing",
    })  # fmt: skip


def test_s2_5_gpus_cut_unequally_are_invalid_in_single(lab: Lab) -> None:
    cut(lab, "all-balanced")
    offers(lab, {})
    labelled(lab, {"nvidia.com/gpu.product": f"{CONFIG}-MIG-INVALID", "nvidia.com/gpu.count": "0"})
    wait_for(
        lambda: any("more than one MIG device type present" in text for text in node_events(lab, "MigNotOffered")),
        lambda: str(node_events(lab, "MigNotOffered")),
    )


def test_s2_7_mixed_in_replicas_doubles_each_profile(lab: Lab) -> None:
    strategy(lab, "mixed")
    offers(lab, {"nvidia.com/mig-1g.5gb": 8, "nvidia.com/mig-2g.10gb": 4, HALF: 4})
    cut(lab, "all-3g.20gb")
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
    wait_for(
        lambda: f"Insufficient {HALF}" in lab.lamina("why", "one-more").stdout,
        lambda: lab.lamina("why", "one-more").stdout,
    )


def test_s2_7_the_example(lab: Lab) -> None:
    lab.kubectl("apply", "-f", str(EXAMPLES / "nvidia" / "mig-replicas.yaml"))
    label(lab, "mig-twice")
    offers(lab, {HALF: 8})


def test_s2_3_without_mig_the_labels_are_those_of_gpus_again(lab: Lab) -> None:
    strategy(lab, "none")
    cut(lab, "all-disabled")
    label(lab, "")
    offers(lab, {GPU: 20})
    labelled(lab, {"nvidia.com/gpu.product": CONFIG, "nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "40960"})
    assert "nvidia.com/mig.strategy" not in labels(lab)
    assert not any("slices" in name or "engines" in name for name in labels(lab))


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
        wait_for(lambda: gives_out_gpus(lab), lambda: lab.kubectl("get", "inventory", lab.node, "-o", "json"))
        lab.apply(pod(f"by-{name}", "sh", "-c", "nvidia-smi -L; echo gds $NVIDIA_GDS"))
        wait_for(lambda: lab.phases() == {"Succeeded": 1}, lambda: lab.kubectl("describe", "pods"))
        log = lab.kubectl("logs", f"by-{name}")
        assert log.count("GPU 0: NVIDIA A100") == 1
        assert "gds enabled" in log
        assert "GPU 1" not in log
        lab.delete_workloads()
    label(lab, "")
