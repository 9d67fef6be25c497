"""Hypothesis plays people, kubelet and accidents."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.whole_node import kinds
from tests.whole_node.claims import CLAIMS
from tests.whole_node.invariants import check
from tests.whole_node.recovery import everything_comes_to_rest
from tests.whole_node.world import GPUS, POLL_S, World
from tests.worlds.clocks import all_done

NUMBER = st.integers(0, 20)
NUMBERS = st.lists(NUMBER, min_size=1, max_size=4)
SETUP = st.sampled_from([*kinds.SETUPS, *(setup for setup in kinds.SETUPS if setup.startswith(("mig", "mps")))])
"""Those with most parts that can be left half done come twice as often."""
POLICY = "policy"
CHANGE = st.one_of(
    st.tuples(st.just(POLICY), st.sampled_from(sorted(kinds.POLICIES))),
    st.tuples(st.just(kinds.FILE_LABEL), st.sampled_from(kinds.FILE_NAMES)),
    st.tuples(st.just(kinds.MIG_LABEL), st.sampled_from(kinds.LAYOUTS)),
)
PROFILES = ("1g.5gb", "2g.10gb", "3g.20gb")
XIDS = (79, 31)
"""One that counts, and one of an application."""
ACCIDENTS = (
    "a_container_crashes",
    "the_agent_dies_soon",
    "the_agent_dies",
    "the_controller_restarts",
    "kubelet_restarts",
    "a_gpu_has_an_error",
    "a_gpu_falls_off_or_comes_back",
    "nvml_fails_or_answers",
    "another_program_partitions",
    "another_program_uses_a_unit",
    "the_machine_reboots",
)


class WholeNode(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp(prefix="lam"))
        self.world = World(self.folder / "node")
        self.ports = self.world.fake_ports()
        self.ports.__enter__()

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do it, let everybody do what follows, and see that all is true."""

        async def done() -> None:
            await work
            await all_done()
            for use in await check(self.world):
                event(f"runs: {use}")

        self.loop.run_until_complete(done())

    @initialize(setup=SETUP, numbers=NUMBERS)
    def a_node_begins_and_pods_run(self, setup: str, numbers: list[int]) -> None:
        self.run(self.world.begin())
        self.another_mode(setup)
        self.time_passes(2 * POLL_S)
        self.pods_that_suit_come(numbers)
        self.pods_go_on(2)

    @rule(setup=SETUP)
    def another_mode(self, setup: str) -> None:
        """People set the node up for something else, whatever is running."""
        self.node_setup = kinds.SETUPS[setup]
        self.run(self.world.configure(self.node_setup.policy))
        self.run(self.world.label(kinds.FILE_LABEL, self.node_setup.file))
        self.run(self.world.label(kinds.MIG_LABEL, self.node_setup.layout))

    @rule(change=CHANGE)
    def one_change(self, change: tuple[str, str]) -> None:
        what, value = change
        self.run(self.world.configure(value) if what == POLICY else self.world.label(what, value))

    @rule(chosen=st.lists(st.sampled_from(sorted(kinds.PODS)), min_size=2, max_size=4))
    def pods_come(self, chosen: list[str]) -> None:
        for kind in chosen:
            self.run(self.world.a_pod_comes(kind))
        self.run(self.world.schedule())

    @rule(numbers=NUMBERS)
    def pods_that_suit_come(self, numbers: list[int]) -> None:
        self.pods_come([self.node_setup.pods[number % len(self.node_setup.pods)] for number in numbers])

    @rule(chosen=st.lists(st.sampled_from(sorted(CLAIMS)), min_size=1, max_size=3))
    def claims_come(self, chosen: list[str]) -> None:
        for kind in chosen:
            self.run(self.world.door.comes(kind))
        self.run(self.world.schedule())

    @rule(number=NUMBER, forced=st.booleans())
    def a_claim_ends(self, number: int, forced: bool) -> None:
        claims = list(self.world.door.claims.values())
        if claims:
            self.run(self.world.door.ends(claims[number % len(claims)], forced=forced))

    @rule(times=st.integers(1, 3))
    def pods_go_on(self, times: int) -> None:
        for _ in range(times):
            self.run(self.world.schedule())
            self.run(self.world.kubelet_works())
            self.run(self.world.time_passes(POLL_S))
        self.run(self.world.inits_end())

    @rule()
    def kubelet_works(self) -> None:
        self.run(self.world.kubelet_works())

    @rule(seconds=st.sampled_from([0.1, 1.0, POLL_S, 70.0]))
    def time_passes(self, seconds: float) -> None:
        self.run(self.world.time_passes(seconds))

    @rule(number=NUMBER, memory=st.sampled_from([1000, 5000, 12000, 50000]), cores=st.sampled_from([5, 30, 70]))
    def a_pod_is_resized(self, number: int, memory: int, cores: int) -> None:
        """Also one that cannot be, and to more than there is."""
        pods = sorted(self.world.kubelet.pods.values(), key=lambda pod: pod.name)
        if pods:
            self.run(self.world.resize(pods[number % len(pods)].name, f"c0={memory},{cores}"))

    @rule(number=NUMBER, finished=st.booleans())
    def a_pod_ends(self, number: int, finished: bool) -> None:
        pods = sorted(self.world.kubelet.pods.values(), key=lambda pod: pod.name)
        if pods:
            name = pods[number % len(pods)].name
            self.run(self.world.finish(name, "Succeeded") if finished else self.world.delete(name))

    @rule(accidents=st.lists(st.tuples(st.sampled_from(ACCIDENTS), st.integers(0, 40)), min_size=1, max_size=2))
    def it_happens_that(self, accidents: list[tuple[str, int]]) -> None:
        """One rule for all accidents, so that there is something that they can happen to."""
        for what, number in accidents:
            getattr(self, what)(number)

    @rule()
    def what_is_broken_is_repaired(self) -> None:
        self.world.nvml.broken = ""
        self.world.nvml.running.clear()
        for number in list(self.world.lost):
            self.world.lose_or_find(number)

    def a_container_crashes(self, number: int) -> None:
        running = [each for _, each in self.world.kubelet.containers if each.running is not None]
        if running:
            running[number % len(running)].running = None

    def the_agent_dies_soon(self, number: int) -> None:
        self.world.life.left = number

    def the_agent_dies(self, number: int) -> None:
        self.run(self.world.agent_dies())
        if number % 2:
            self.run(self.world.agent_starts())

    def the_controller_restarts(self, number: int) -> None:
        self.run(self.world.control_starts())

    def kubelet_restarts(self, number: int) -> None:
        self.world.kubelet.restart()
        self.run(all_done())

    def a_gpu_has_an_error(self, number: int) -> None:
        self.world.nvml.strike(GPUS[number % len(GPUS)], XIDS[number // len(GPUS) % len(XIDS)])

    def a_gpu_falls_off_or_comes_back(self, number: int) -> None:
        self.world.lose_or_find(number % len(GPUS))

    def nvml_fails_or_answers(self, number: int) -> None:
        self.world.nvml.broken = "" if self.world.nvml.broken else "Driver Not Loaded"

    def another_program_partitions(self, number: int) -> None:
        gpu, profile = GPUS[number % len(GPUS)], PROFILES[number // len(GPUS) % len(PROFILES)]
        self.run(self.world.partition_by_hand(gpu, profile))

    def another_program_uses_a_unit(self, number: int) -> None:
        units = [
            unit for gpu in GPUS for unit in (gpu, *(each.uuid for each in self.world.nvml.instances.get(gpu, ())))
        ]
        self.world.use(units[number % len(units)])

    def the_machine_reboots(self, number: int) -> None:
        self.run(self.world.reboot())

    def teardown(self) -> None:
        try:
            if self.world.task is not None:
                self.loop.run_until_complete(everything_comes_to_rest(self.world))
        finally:
            self.loop.run_until_complete(self.world.end())
            self.ports.__exit__(None, None, None)
            self.loop.close()
            shutil.rmtree(self.folder)
