"""How much memory of a GPU a container holds by the driver's figures, and when that is not known."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from lamina.agent.state.holdings import Bound
from lamina.ports.nvml import GpuProcess
from tests.agent.node import GPU, Node, container, share

UIDS = {"a": "0f0f0f0f-1111-4222-8333-444444444444", "b": "0f0f0f0f-1111-4222-8333-555555555555"}
PID = 11
HOST = "0::/system.slice/Xorg.service\n"


def pod_cgroup(pod: str, *, systemd: bool = False) -> str:
    uid = UIDS[pod].replace("-", "_") if systemd else UIDS[pod]
    return f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{uid}.slice/cri-0123456789ab.scope\n"


class Containers:
    """`main` and `side` of the pod a, and `main` of the pod b, on one GPU. A process of the driver's list is PID."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.bound = {
            (pod, name): Bound(
                namespace="default", pod=pod, pod_uid=UIDS[pod], container=name, grant=container(name, share(0))
            )
            for pod, name in (("a", "main"), ("a", "side"), ("b", "main"))
        }
        names = [node.allocate(f"ticket-{number}") for number in range(len(self.bound))]
        node.record.bind(dict(zip(names, self.bound.values(), strict=True)))

    def maps(self, pod: str, name: str) -> None:
        """The process has mapped the usage file of this container."""
        self.node.host.mapped.add((PID, self.node.places.containers / f"{UIDS[pod]}_{name}" / "usage"))

    def makes_cgroups(self) -> None:
        (self.node.root / "cgroup" / "kubepods.slice" / f"kubepods-pod{UIDS['a'].replace('-', '_')}.slice").mkdir(
            parents=True
        )

    async def memory(self, *processes: GpuProcess) -> int | None:
        self.node.nvml.running[GPU[0]] = processes
        return await self.node.owners.memory(self.bound["a", "main"], GPU[0])


@pytest.fixture
def containers(node: Node) -> Containers:
    return Containers(node)


CASES: dict[str, tuple[dict[str, Any], int | None]] = {
    "its pod's": ({"cgroups": pod_cgroup("a")}, 7),
    "its pod's, as systemd writes it": ({"cgroups": pod_cgroup("a", systemd=True)}, 7),
    "its pod's, with its usage": ({"cgroups": pod_cgroup("a"), "maps": ("a", "main")}, 7),
    "another container's of its pod": ({"cgroups": pod_cgroup("a"), "maps": ("a", "side")}, 0),
    "another pod's": ({"cgroups": pod_cgroup("b")}, 0),
    "another pod's, with its usage": ({"cgroups": pod_cgroup("b"), "maps": ("a", "main")}, 0),
    "of no pod, without cgroups of pods": ({"cgroups": HOST}, None),
    "of no pod, with its usage": ({"cgroups": HOST, "maps": ("a", "main")}, 7),
    "of no pod, with another one's usage": ({"cgroups": HOST, "maps": ("b", "main")}, 0),
    "of no pod, with cgroups of pods": ({"cgroups": HOST, "makes": True}, 0),
    "not to be seen here": ({"cgroups": ""}, None),
    "not to be seen here, with cgroups of pods": ({"cgroups": "", "makes": True}, None),
}


@pytest.mark.parametrize("case", CASES)
async def test_whose_a_process_is(containers: Containers, case: str) -> None:
    given, expected = CASES[case]
    containers.node.host.cgroups[PID] = given["cgroups"]
    if "maps" in given:
        containers.maps(*given["maps"])
    if "makes" in given:
        containers.makes_cgroups()
    assert await containers.memory(GpuProcess(PID, 7)) == expected


async def test_what_is_not_known_of_one_process_is_not_known_of_all(containers: Containers) -> None:
    for pid in range(3):
        containers.node.host.cgroups[pid] = pod_cgroup("a")
    containers.node.host.cgroups[3] = pod_cgroup("b")
    sizes: list[int | None] = [1, 2, None]
    for order in itertools.permutations(sizes):
        assert await containers.memory(*map(GpuProcess, range(3), order)) is None
    assert await containers.memory(GpuProcess(0, 1), GpuProcess(1, 2), GpuProcess(3, None)) == 3
    assert await containers.memory() == 0


async def test_a_process_that_has_just_ended_is_not_in_the_next_list(
    containers: Containers, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists: Iterator[tuple[GpuProcess, ...]] = iter([(GpuProcess(PID, 7),), ()])

    async def processes(uuid: str) -> tuple[GpuProcess, ...]:
        return next(lists)

    monkeypatch.setattr(containers.node.nvml, "processes", processes)
    assert await containers.memory() == 0
