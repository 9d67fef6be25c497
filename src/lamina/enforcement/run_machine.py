"""The machine that a run sees, and the GPU of it that the run gets.

`--gpu` counts as nvidia-smi does, whatever CUDA_VISIBLE_DEVICES says. Where the shell has that variable, it bounds the
choice: a job that was given GPU 1 gets no other one. What it means is up to the driver, which may order GPUs otherwise
than nvidia-smi, so the driver is asked.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lamina.enforcement.driver import LocalGpu, choose, find_driver, find_simulator
from lamina.enforcement.driver_query import ask_visible, gpus
from lamina.errors import BadInput, Outside

VISIBLE = "CUDA_VISIBLE_DEVICES"


class RunMachine(NamedTuple):
    """`variables` are those of the command, `simulated` those among them by which the driver finds its machine."""

    variables: dict[str, str]
    driver: Path
    gpu: LocalGpu
    simulated: Mapping[str, str]


def find_machine(
    folder: Path, gpu: str, simulate: str | None, others: Callable[[], Iterable[Path]] = tuple
) -> RunMachine:
    """This machine, or a simulated one with its files in the folder, which it may have in common with `others`: folders
    of runs at the same time. Raises BadInput for what is not there, and Outside without a driver."""
    variables, simulated = dict(os.environ), dict[str, str]()
    if simulate is None:
        try:
            driver = find_driver()
        except Outside as error:
            raise Outside(f"{error}; use --simulate MODEL") from error
        found = gpus(driver)
    else:
        variables.pop("NVIDIA_VISIBLE_DEVICES", None)
        driver, found, simulated = find_simulator()(simulate, folder, others)
        variables |= simulated
    chosen = _choose_visible(driver, found, gpu, variables)
    return RunMachine(variables, driver, chosen, simulated)


def _choose_visible(driver: Path, found: Sequence[LocalGpu], wanted: str, variables: Mapping[str, str]) -> LocalGpu:
    listed = variables.get(VISIBLE)
    if listed is None:
        return choose(found, wanted or "0")
    seen = [f"GPU-{each}" for each in ask_visible(driver, variables)]
    visible = sorted((gpu for gpu in found if gpu.uuid in seen), key=lambda gpu: seen.index(gpu.uuid))
    if not visible:
        raise BadInput(f"{VISIBLE}={listed} leaves none of the GPUs of this machine; unset it, or name one of them")
    if not wanted:
        return visible[0]
    chosen = choose(found, wanted)
    if chosen not in visible:
        left = ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in visible)
        raise BadInput(
            f"--gpu {wanted} is GPU {chosen.index} as nvidia-smi counts, and {VISIBLE}={listed} leaves it out; "
            f"leave out --gpu, or name one of: {left}"
        )
    return chosen
