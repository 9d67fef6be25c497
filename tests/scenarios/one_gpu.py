"""Two programs on one GPU, and the measurement of their time."""

from lamina_lab import simgpu
from lamina_lab.simgpu.state import SimulatedGpu
from tests.scenarios.labs import Lab
from tests.waiting import wait_until

PODS = ("dcgmproftester-1", "dcgmproftester-2")
MS = 1_000_000


def gpu(lab: Lab) -> SimulatedGpu:
    """The GPU now; a question of nvidia-smi has it work out the turns up to now."""
    if lab.phases():
        lab.kubectl("exec", PODS[0], "--", "nvidia-smi")
    return simgpu.read(lab.machine).gpus[0]


def busy(state: SimulatedGpu) -> bool:
    """Whether both have work left."""
    return len(state.processes) == 2 and all(process.queued_ns > 100 * MS for process in state.processes)


def second_of_work(lab: Lab) -> list[SimulatedGpu]:
    """The GPU again and again, until it has worked for a second."""
    states = [gpu(lab)]

    def a_second_later() -> bool:
        states.append(gpu(lab))
        return states[-1].busy_ns - states[0].busy_ns > 1000 * MS

    wait_until(a_second_later, lambda: "the GPU stands still")
    return states


def measure(lab: Lab) -> tuple[list[float], float]:
    """What each program got of a second of the GPU's time, as parts of one, and the milliseconds of an average turn."""
    states = second_of_work(lab)
    while not all(map(busy, states)):  # one of them was about to ask for more
        states = second_of_work(lab)
    before, after = states[0], states[-1]
    given = {process.pid: process.busy_ns for process in before.processes}
    got = [process.busy_ns - given[process.pid] for process in after.processes]
    return [each / sum(got) for each in got], sum(got) / MS / (after.turns - before.turns)
