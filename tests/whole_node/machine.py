"""Hypothesis plays people, kubelet and accidents."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.whole_node import kinds
from tests.whole_node.calm import everything_comes_to_rest
from tests.whole_node.doors import all_done
from tests.whole_node.truth import check
from tests.whole_node.world import GPUS, POLL_S, World

GPU = st.sampled_from(GPUS)
NUMBER = st.integers(0, 20)
PROFILES = ("1g.5gb", "2g.10gb", "3g.20gb")
XIDS = (79, 31)
"""One that counts, and one of an application."""


class WholeNode(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp(prefix="lam"))
        self.world = World(self.folder / "node")
        self.doors = self.world.doors()
        self.doors.__enter__()

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do it, let everybody do what follows, and see that all is true."""

        async def done() -> None:
            await work
            await all_done()
            await check(self.world)

        self.loop.run_until_complete(done())

    @initialize(policy=st.sampled_from(sorted(kinds.POLICIES)), file=st.sampled_from(kinds.FILE_NAMES))
    def a_node_begins(self, policy: str, file: str) -> None:
        self.run(self.world.begin())
        self.run(self.world.configure(policy))
        self.run(self.world.label(kinds.FILE_LABEL, file))
        self.run(self.world.time_passes(2 * POLL_S))

    @rule(chosen=st.lists(st.sampled_from(sorted(kinds.PODS)), min_size=2, max_size=4))
    def pods_come(self, chosen: list[str]) -> None:
        for kind in chosen:
            self.run(self.world.a_pod_comes(kind))
        self.run(self.world.schedule())

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

    @rule(number=NUMBER, finished=st.booleans())
    def a_pod_ends(self, number: int, finished: bool) -> None:
        pods = sorted(self.world.kubelet.pods.values(), key=lambda pod: pod.name)
        if pods:
            name = pods[number % len(pods)].name
            self.run(self.world.finish(name, "Succeeded") if finished else self.world.delete(name))

    @rule(number=NUMBER)
    def a_container_crashes(self, number: int) -> None:
        running = [each for _, each in self.world.kubelet.containers if each.running is not None]
        if running:
            running[number % len(running)].running = None

    @rule(policy=st.sampled_from(sorted(kinds.POLICIES)))
    def the_policy_changes(self, policy: str) -> None:
        self.run(self.world.configure(policy))

    @rule(name=st.sampled_from(kinds.FILE_NAMES))
    def the_file_changes(self, name: str) -> None:
        self.run(self.world.label(kinds.FILE_LABEL, name))

    @rule(layout=st.sampled_from(kinds.LAYOUTS))
    def the_layout_changes(self, layout: str) -> None:
        self.run(self.world.label(kinds.MIG_LABEL, layout))

    @rule(moments=st.integers(0, 40))
    def the_agent_dies_soon(self, moments: int) -> None:
        self.world.life.left = moments

    @rule(starts=st.booleans())
    def the_agent_dies(self, starts: bool) -> None:
        self.run(self.world.agent_dies())
        if starts:
            self.run(self.world.agent_starts())

    @rule()
    def the_control_part_restarts(self) -> None:
        self.run(self.world.control_starts())

    @rule()
    def kubelet_restarts(self) -> None:
        self.world.kubelet.restart()
        self.run(all_done())

    @rule(gpu=GPU, xid=st.sampled_from(XIDS))
    def a_gpu_has_an_error(self, gpu: str, xid: int) -> None:
        self.world.nvml.strike(gpu, xid)

    @rule(number=st.integers(0, 1))
    def a_gpu_falls_off_or_comes_back(self, number: int) -> None:
        self.world.lose_or_find(number)

    @rule()
    def nvml_falls_silent_or_answers(self) -> None:
        self.world.nvml.broken = "" if self.world.nvml.broken else "Driver Not Loaded"

    @rule(gpu=GPU, profile=st.sampled_from(PROFILES))
    def somebody_cuts_by_hand(self, gpu: str, profile: str) -> None:
        self.run(self.world.cut_by_hand(gpu, profile))

    @rule(gpu=GPU, number=NUMBER)
    def somebody_uses_a_unit(self, gpu: str, number: int) -> None:
        units = [gpu, *(each.uuid for each in self.world.nvml.instances.get(gpu, ()))]
        self.world.use(units[number % len(units)])

    @rule()
    def others_processes_end(self) -> None:
        self.world.nvml.running.clear()

    @rule()
    def the_machine_reboots(self) -> None:
        self.run(self.world.reboot())

    def teardown(self) -> None:
        try:
            if self.world.task is not None:
                self.loop.run_until_complete(everything_comes_to_rest(self.world))
        finally:
            self.loop.run_until_complete(self.world.end())
            self.doors.__exit__(None, None, None)
            self.loop.close()
            shutil.rmtree(self.folder)
