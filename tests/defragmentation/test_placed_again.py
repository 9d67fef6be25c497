"""Moves on trial: they go where the policy places pods, they make GPUs idle, and they can be taken back."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.configuration import CONFIG_MAP
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.core.config import CONFIG_MAP_KEY
from lamina.core.gpus import Gpu
from lamina.core.ledger import Taken
from lamina.defragmentation.placed_again import Place, PlacedAgain
from lamina.defragmentation.plan import plan
from lamina.placement.eviction.defrag import Resident, advise
from lamina.ports.kube import CONFIG_MAPS, INVENTORIES
from lamina.report.cluster_reader import read
from lamina.simulation.replay import Replay
from lamina.simulation.workload import SimNode, SimPod
from tests.defragmentation.cluster import FragmentedKube
from tests.placement.nodes import ask, request

MIB = 1000


def node(name: str, gpus: int) -> SimNode:
    listed = tuple(
        Gpu(uuid=f"{name}-{place}", index=place, model="M", memory_mib=MIB, capacity_mib=MIB, slots=4)
        for place in range(gpus)
    )
    return SimNode(name=name, cpu=10000, memory_mib=10000, gpus=listed)


class Trial:
    """Pods on GPUs, under one policy."""

    def __init__(self, nodes: Sequence[SimNode], pods: Mapping[str, tuple[str, int]], policy: str) -> None:
        """`pods` have the GPU and the MiB of each, by name."""
        self.nodes = nodes
        self.replay = Replay(nodes, (), policy)
        self.residents: list[Resident] = []
        places = []
        for name, (gpu, memory) in pods.items():
            pod = SimPod(name=name, cpu=100, memory_mib=10, request=request(ask(memory)))
            on, taken = gpu.partition("-")[0], {gpu: Taken(1, memory, 0, without_cores=True)}
            self.residents.append(Resident(name, pod.request, on, taken))
            row = self.replay.rows[on]
            self.replay.capacity.take(row, pod, taken)
            self.replay.chooser.changed(row)
            places.append(Place(pod, row, taken))
        self.moves = PlacedAgain(self.replay, places)

    def step(self, frees: str, *pods: str) -> dict[str, str] | None:
        """The GPU to which each pod goes."""
        places = self.moves(frees.partition("-")[0], frees, pods)
        return None if places is None else {pod: next(iter(taken)) for pod, (_, taken) in places.items()}

    def idle(self) -> set[str]:
        return {
            gpu.gpu.uuid
            for row in range(len(self.nodes))
            for gpu in self.replay.capacity.state(row).gpus
            if not gpu.taken.slots
        }

    def state(self) -> list[object]:
        capacity = self.replay.capacity
        free = [(gpu.free_memory, gpu.free_slots) for row in range(len(self.nodes)) for gpu in capacity.state(row).gpus]
        return [free, capacity.cpu.tolist(), capacity.memory.tolist()]


def test_a_pod_goes_where_the_policy_places_it() -> None:
    trial = Trial([node("a", 2), node("b", 1)], {"x": ("a-0", 300), "y": ("b-0", 400)}, "binpack")
    assert trial.step("a-0", "x") == {"x": "b-0"}
    assert trial.idle() == {"a-0", "a-1"}


def test_a_step_after_which_another_gpu_would_be_taken_changes_nothing() -> None:
    trial = Trial([node("a", 2), node("b", 1)], {"x": ("a-0", 300), "y": ("b-0", 400)}, "spread")
    before = trial.state()
    assert trial.step("a-0", "x") is None
    assert trial.state() == before


def test_a_step_after_which_a_pod_has_no_place_changes_nothing() -> None:
    trial = Trial([node("a", 1), node("b", 1)], {"x": ("a-0", 300), "z": ("a-0", 300), "y": ("b-0", 500)}, "binpack")
    before = trial.state()
    assert trial.step("a-0", "x", "z") is None
    assert trial.state() == before


def test_the_next_step_begins_where_the_one_before_ended_until_all_are_taken_back() -> None:
    pods = {"x": ("a-0", 300), "y": ("b-0", 300), "z": ("c-0", 600)}
    trial = Trial([node("a", 1), node("b", 1), node("c", 1)], pods, "binpack")
    before = trial.state()
    assert trial.step("a-0", "x") is not None
    assert trial.step("b-0", "y") in (None, {"y": "c-0"})
    trial.moves.undo()
    assert trial.state() == before


@pytest.mark.parametrize("policy", ["binpack", "spread", "best-fit", "packing"])
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([f"{on}-{at}" for on in "abc" for at in range(2)]), st.integers(50, 700))))
def test_each_step_of_a_plan_makes_gpus_idle_and_nothing_is_left_after_all_is_taken_back(
    policy: str, given_pods: list[tuple[str, int]]
) -> None:
    held: dict[str, list[int]] = {}
    pods = {}
    for number, (gpu, memory) in enumerate(given_pods):
        if sum(held.get(gpu, ())) + memory <= MIB and len(held.get(gpu, ())) < 4:
            held.setdefault(gpu, []).append(memory)
            pods[f"p{number}"] = gpu, memory
    nodes = [node(name, 2) for name in "abc"]
    trial = Trial(nodes, pods, policy)
    before, idle = trial.state(), len(trial.idle())
    gpus = {each.name: each.gpus for each in nodes}
    places = dict(pods)
    for step in advise(gpus, trial.residents, place_again=trial.moves):
        assert len(trial.idle()) > idle and step.frees in trial.idle()
        idle = len(trial.idle())
        for move in step.moves:
            assert places[move.pod][0] == move.from_gpus[0] != move.to_gpus[0]
            places[move.pod] = move.to_gpus[0], places[move.pod][1]
        assert trial.idle().isdisjoint(gpu for gpu, _ in places.values())
    trial.moves.undo()
    assert trial.state() == before


@pytest.mark.parametrize(("policy", "moves"), [("packing", ["default/a"]), ("binpack", ["default/a"]), ("spread", [])])
async def test_a_plan_asks_the_policy_of_the_configuration(policy: str, moves: list[str]) -> None:
    """With spread, an evicted pod takes the emptiest GPU, so moving it is useless."""
    kube = FragmentedKube()
    await kube.fill(a="GPU-n-0", b="GPU-n-1", c="GPU-n-1")
    inventory = await kube.get(INVENTORIES, "n")
    idle = {**inventory["spec"]["gpus"][0], "uuid": "GPU-n-2", "index": 2}
    inventory["spec"]["gpus"].append(idle)
    await kube.replace(INVENTORIES, inventory)
    policies = f"placement: {{nodePolicy: {policy}, gpuPolicy: {policy}}}"
    text = f"apiVersion: lamina.dev/v1alpha1\nkind: Configuration\n{policies}\n"
    meta = {"name": CONFIG_MAP, "namespace": DEFAULT_NAMESPACE}
    await kube.create(CONFIG_MAPS, {"metadata": meta, "data": {CONFIG_MAP_KEY: text}})
    cluster = await read(kube, hosts=True)
    assert [move.pod for step in plan(cluster, 5) for move in step.moves] == moves


async def test_a_pod_on_a_node_that_offers_no_gpus_any_more_is_left_out() -> None:
    kube = FragmentedKube()
    await kube.fill(a="GPU-n-0", b="GPU-n-1", c="GPU-n-1")
    await kube.delete(INVENTORIES, "n")
    assert list(plan(await read(kube), 5)) == []
