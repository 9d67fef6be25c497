"""What docs/how-to/disaster-recovery.md says is lost with Lamina's objects, and what is not."""

import yaml

from tests.scenarios.labs import Lab
from tests.scenarios.processes import kill
from tests.waiting import wait_until

INVENTORIES = "/apis/lamina.dev/v1alpha1/inventories"


def pod(name: str) -> str:
    """A pod with more than half of a GPU of the lab."""
    main = {"name": "main", "image": "any", "command": ["sleep", "infinity"]}
    main["resources"] = {"limits": {"nvidia.com/gpumem": 20000}}  # type: ignore[assignment]
    spec = {"terminationGracePeriodSeconds": 1, "containers": [main]}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "lost"}}, "spec": spec}
    )


def test_grants_inventories_and_the_controllers_memory_are_lost(lab: Lab) -> None:
    """Containers keep their limits, inventories come back, and the pod counts on each GPU until it ends."""
    lab.apply(pod("kept"))
    lab.settled("app=lost", {"Running": 1})
    lab.kubectl("delete", "grants", "--all", "--all-namespaces")
    lab.kubectl("delete", "inventories", "--all")
    kill(lab, "lamina", "controller")
    wait_until(lambda: lab.read(INVENTORIES)["items"], lab.described)
    assert "20000MiB" in lab.kubectl("exec", "kept", "--", "nvidia-smi")
    wait_until(lambda: "created" in lab.kubectl("create", "-f", "-", stdin=pod("next"), check=False), lab.described)
    wait_until(lambda: "best GPU has 12768 MiB free" in lab.lamina("why", "next").stdout, lab.described)
    assert lab.phases("app=lost") == {"Pending": 1, "Running": 1}
    lab.kubectl("delete", "pod", "kept")
    lab.settled("app=lost", {"Running": 1})
