"""GPUs that are linked: what the simulated driver tells arrives at placement, and a cordon keeps a GPU free."""

from pathlib import Path

from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES, apply, grant_of, running
from tests.scenarios.labs import Lab
from tests.waiting import wait_until


def index_of(lab: Lab, uuid: str) -> int:
    found = lab.kubectl("get", "inventory", "node-0", "-o", "jsonpath={.spec.gpus[*].uuid}").split()
    return found.index(uuid)


def test_linked_gpus_of_one_numa_node_and_a_cordon(start_lab: StartLab) -> None:
    machines = str(Path(EXAMPLES) / "lab-connected.yaml")
    lab = start_lab("linked", "--machines", machines)
    assert lab.lamina("cordon", "gpu", "node-0", "0").returncode == 0
    cordoned = "jsonpath={.spec.gpus[0].cordoned}"
    wait_until(lambda: lab.kubectl("get", "inventory", "node-0", "-o", cordoned) == "true", lambda: "no cordon")
    apply(lab, "topology")
    running(lab, "topology")
    (container,) = grant_of(lab, "topology")["containers"]  # type: ignore[misc]
    assert sorted(index_of(lab, share["gpu"]) for share in container["shares"]) == [1, 3]
    for number in (1, 2, 3):
        lab.lamina("cordon", "gpu", "node-0", str(number))
    cordons = "jsonpath={.spec.gpus[*].cordoned}"
    wait_until(lambda: lab.kubectl("get", "inventory", "node-0", "-o", cordons).count("true") == 4, lambda: "no cordon")
    running(lab, "topology")
    apply(lab, "memory-percentage")

    def reported() -> bool:
        return "all 4 GPUs are cordoned" in lab.lamina("why", "memory-percentage").stdout

    wait_until(reported, lambda: lab.lamina("why", "memory-percentage").stdout)
    assert lab.lamina("uncordon", "gpu", "node-0", "2").returncode == 0
    running(lab, "memory-percentage")
