"""Pools of nodes: each has agents with its own directories, and each node the agents of one pool or of none."""

from typing import Any

import pytest

from lamina.install import values
from lamina.install.chart import objects
from lamina.install.cleaner import cleaner
from lamina.install.names import AGENT, MPS, chosen
from lamina.placement.hosts.selection import allowed_by_affinity, unmatched_labels
from lamina.ports.kube import Object

ARM, RHEL = "{name: arm64, driverDir: /usr/lib/aarch64-linux-gnu}", "{name: rhel, driverDir: /usr/lib64, cdiDir: /c}"
POOLS = f"agent.pools=[{ARM}, {RHEL}]"
GPU = {"gpu": "on", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}


def agents(*settings: str) -> dict[str, Object]:
    made = objects(values.plain(values.read([], ["agent.mps=true", *settings])), (1, 36, 0))
    return {each["metadata"]["name"]: each for each in made if each["kind"] == "DaemonSet"}


def on(labels: dict[str, str], *settings: str) -> list[str]:
    """The DaemonSets that have a pod on a node with these labels."""
    pods = {name: each["spec"]["template"]["spec"] for name, each in agents(*settings).items()}
    chosen_by = {name for name, pod in pods.items() if not unmatched_labels(pod, labels)}
    return [name for name in pods if name in chosen_by and allowed_by_affinity(pods[name], "n", labels)]


@pytest.mark.parametrize(
    ("pool", "expected"),
    [({}, AGENT), ({"lamina.dev/pool": "other"}, AGENT)]
    + [({"lamina.dev/pool": name}, f"{AGENT}-{name}") for name in ("arm64", "rhel")],
)
@pytest.mark.parametrize("terms", ["", "agent.nodeSelectorTerms=[]"])
def test_each_node_has_one_agent(pool: dict[str, str], expected: str, terms: str) -> None:
    assert sorted(on(GPU | pool, POOLS, *filter(None, [terms]))) == sorted([expected, MPS])


def test_another_label_can_name_the_pool() -> None:
    by_arch = (POOLS, "agent.poolLabel=kubernetes.io/arch")
    assert on(GPU | {"kubernetes.io/arch": "arm64"}, *by_arch) == [f"{AGENT}-arm64", MPS]
    assert on(GPU, *by_arch) == [AGENT, MPS]


def test_nodes_without_gpus_have_none() -> None:
    assert on({"kubernetes.io/os": "linux", "lamina.dev/pool": "rhel", "kubernetes.io/arch": "amd64"}, POOLS) == []


def directories(each: Object) -> dict[str, Any]:
    (agent,) = each["spec"]["template"]["spec"]["containers"]
    given = {one["name"]: one.get("value") for one in agent["env"]}
    return {name: given[f"LAMINA_{name}_DIR"] for name in ("DRIVER", "KUBELET", "CDI", "STATE")}


def test_a_pool_has_its_own_directories_and_otherwise_those_of_all() -> None:
    made = agents(POOLS, "agent.kubeletDir=/k", "agent.driverDir=/d")
    common = {"DRIVER": "/d", "KUBELET": "/k", "CDI": "/var/run/cdi", "STATE": "/var/lib/lamina"}
    assert directories(made[AGENT]) == common
    assert directories(made[f"{AGENT}-arm64"]) == common | {"DRIVER": "/usr/lib/aarch64-linux-gnu"}
    assert directories(made[f"{AGENT}-rhel"]) == common | {"DRIVER": "/usr/lib64", "CDI": "/c"}
    volumes = {each["name"]: each for each in made[f"{AGENT}-rhel"]["spec"]["template"]["spec"]["volumes"]}
    assert volumes["driver"]["hostPath"]["path"] == "/usr/lib64" and volumes["cdi"]["hostPath"]["path"] == "/c"


def test_daemon_sets_of_pools_select_their_own_pods() -> None:
    made = agents(POOLS)
    assert made[AGENT]["spec"]["selector"]["matchLabels"] == chosen(AGENT), "it cannot change"
    for name in ("arm64", "rhel"):
        spec = made[f"{AGENT}-{name}"]["spec"]
        assert spec["selector"]["matchLabels"] == chosen(AGENT) | {"lamina.dev/pool": name}
        assert spec["template"]["metadata"]["labels"].items() >= spec["selector"]["matchLabels"].items()


def test_each_pool_has_its_own_cleaner() -> None:
    made = [cleaner(each) for name, each in agents(POOLS).items() if name != MPS]
    assert [each["metadata"]["name"] for each in made] == [
        "lamina-cleaner",
        "lamina-cleaner-arm64",
        "lamina-cleaner-rhel",
    ]
    selected = [each["spec"]["selector"]["matchLabels"] for each in made]
    assert len({str(each) for each in selected}) == 3
    for each, labels in zip(made, selected, strict=True):
        assert each["spec"]["template"]["metadata"]["labels"] == labels
        assert labels["app.kubernetes.io/component"] == "cleaner"
