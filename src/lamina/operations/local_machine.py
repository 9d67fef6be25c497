"""What runs on this machine without Kubernetes, and on which GPUs: those of its driver, and simulated ones of runs."""

import os
import platform
from pathlib import Path
from typing import NamedTuple

from lamina.enforcement.driver import LocalGpu, find_driver
from lamina.enforcement.driver_query import ask_gpus
from lamina.enforcement.runs import Run, exceeded, runs
from lamina.errors import Outside
from lamina.report.gpus import GpuRow
from lamina.report.local_runs import RunRow, local_gpu_rows, run_row, run_share
from lamina.report.shares import PodShare


class LocalMachine(NamedTuple):
    """This machine at one moment."""

    node: str
    gpus: tuple[LocalGpu, ...]
    runs: tuple[Run, ...]
    no_driver: str = ""
    """Why its driver says nothing."""

    @property
    def nothing(self) -> str:
        """Why there is nothing to show, where the machine has neither a GPU nor a run that simulates one."""
        return "" if self.gpus else self.no_driver or "this machine has no GPU"

    @property
    def run_rows(self) -> list[RunRow]:
        """A row for each run, the oldest first."""
        return [run_row(run) for run in self.runs]

    @property
    def gpu_rows(self) -> list[GpuRow]:
        """A row for each GPU, those of the driver first."""
        return local_gpu_rows(self.gpus, self.runs, self.node)

    @property
    def shares(self) -> list[PodShare]:
        """The shares of the runs whose files can be read."""
        found = (run_share(run, self.node) for run in self.runs)
        return [share for share in found if share is not None]

    @property
    def warnings(self) -> list[str]:
        """Limits that exceed a GPU, and runs that are not counted."""
        over = [sentence for gpu in self.gpus if (sentence := exceeded(gpu, self.runs))]
        hidden = [run for run in self.runs if run.refusal]
        if not hidden:
            return over
        users = ", ".join(sorted({run.user for run in hidden}))
        what = "1 run" if len(hidden) == 1 else f"{len(hidden)} runs"
        return [*over, f"{what} of {users} cannot be read and not counted: {hidden[0].refusal}"]


def read_usable_machine() -> LocalMachine:
    """This machine now. Raises Outside where it has neither a GPU nor a run that simulates one."""
    machine = read_machine()
    if machine.nothing:
        raise Outside(machine.nothing)
    return machine


def read_machine(*, gpus: bool = True) -> LocalMachine:
    """This machine now. Without `gpus`, those of runs are there without figures, and no driver is asked."""
    found = tuple(runs())
    known: dict[str, LocalGpu] = {}
    no_driver = ""
    if gpus:
        try:
            known = {gpu.uuid: gpu for gpu in ask_gpus(find_driver(), os.environ)}
        except Outside as error:
            no_driver = str(error)
    for run in found:
        if run.record is not None and run.record.gpu.uuid not in known:
            known |= {gpu.uuid: gpu for gpu in _simulated(run) if gpus}
            known.setdefault(run.record.gpu.uuid, run.record.gpu)
    return LocalMachine(platform.node(), tuple(known.values()), found, no_driver)


def _simulated(run: Run) -> tuple[LocalGpu, ...]:
    """The GPUs of the simulated machine of a run. Another user's is not asked, as that loads what the user names."""
    if not (run.own and run.record and run.record.simulated):
        return ()
    variables = {name: value for name, value in os.environ.items() if name != "NVIDIA_VISIBLE_DEVICES"}
    try:
        return ask_gpus(Path(run.record.driver), variables | run.record.simulated)
    except Outside:
        return ()  # it has just ended
