"""The runs of one machine and its GPUs, as commands show the pods and GPUs of a cluster. Pure.

A run stands where a pod does: it has one share of one GPU, and its user stands where the namespace does.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from lamina.core.gpus import Mode
from lamina.core.grants import ComputePolicy
from lamina.core.quantities import MIB
from lamina.enforcement.driver import LocalGpu
from lamina.enforcement.limits import DeviceLimit
from lamina.enforcement.runs import Run
from lamina.report import compute
from lamina.report.gpus import HEALTHY, IDLE, GpuRow
from lamina.report.shares import PodShare, ShareRow

RUNNING, ENDED, UNREADABLE = "Running", "Ended", "Unreadable"


class RunProcess(Struct, frozen=True, kw_only=True, rename="camel"):
    """A process of a run that uses the GPU. For a container, `pid` is the one that it has there."""

    pid: int
    name: str
    used_mib: int


class RunRow(Struct, frozen=True, kw_only=True, rename="camel"):
    """One run. Memory is in MiB, compute in percent of the GPU's time; None is what is not known."""

    run: str
    user: str
    pid: int | None
    status: str
    """`Running`, `Ended` without cleaning up, or `Unreadable`."""
    command: str
    device: str
    """The CDI device of its containers, where it limits containers."""
    started: float | None
    """In s since the epoch."""
    gpu: str
    index: int | None
    model: str
    memory_mib: int | None
    used_mib: int | None
    peak_mib: int | None
    refusals: int | None
    compute_percent: int | None
    """0 where compute is shared without a limit."""
    compute_meaning: str
    processes: tuple[RunProcess, ...]
    reason: str
    """Why it is not running, and what to do."""

    @property
    def compute(self) -> str:
        """Its compute in words."""
        return compute.in_words(self.compute_percent, self.compute_meaning) if self.compute_percent is not None else "-"


def run_row(run: Run) -> RunRow:
    """The row of a run."""
    record, limit, use = run.record, run.limit, run.use
    if record is None or limit is None or use is None:
        return RunRow(
            run=run.name, user=run.user, pid=None, status=UNREADABLE, command="", device="", started=None, gpu="",
            index=None, model="", memory_mib=None, used_mib=None, peak_mib=None, refusals=None, compute_percent=None,
            compute_meaning="", processes=(), reason=f"the files in {run.folder} cannot be read: {run.refusal}",
        )  # fmt: skip
    return RunRow(
        run=run.name,
        user=run.user,
        pid=record.pid,
        status=RUNNING if run.alive else ENDED,
        command=record.command,
        device=record.device,
        started=record.started,
        gpu=limit.uuid,
        index=record.gpu.index,
        model=record.gpu.name,
        memory_mib=limit.memory_bytes // MIB,
        used_mib=run.used_bytes // MIB,
        peak_mib=use.peak // MIB,
        refusals=use.refusals,
        compute_percent=limit.cores_percent,
        compute_meaning=_meaning(limit),
        processes=tuple(
            RunProcess(pid=each.pid, name=each.name, used_mib=each.total(limit.uuid) // MIB) for each in run.processes
        ),
        reason="" if run.alive else _ended(run),
    )


def run_share(run: Run, node: str) -> PodShare | None:
    """The share of a run, where its files can be read."""
    row = run_row(run)
    if row.memory_mib is None:
        return None
    share = ShareRow(
        container=row.device or row.command,
        gpu=row.gpu,
        index=row.index,
        mode=Mode.QUOTA.value,
        memory_mib=row.memory_mib,
        limit_mib=row.memory_mib,
        compute_percent=row.compute_percent,
        compute_meaning=row.compute_meaning,
        used_mib=row.used_mib,
        peak_mib=row.peak_mib,
    )
    return PodShare(row.user, row.run, node, row.model, share, refusals=row.refusals)


def local_gpu_rows(gpus: Iterable[LocalGpu], runs: Sequence[Run], node: str) -> list[GpuRow]:
    """The GPUs of a machine with what is granted to its runs. Any number of runs may share a GPU, so none has slots."""
    rows = [run_row(run) for run in runs]
    return [_gpu_row(gpu, [row for row in rows if row.gpu == gpu.uuid], node) for gpu in gpus]


def _gpu_row(gpu: LocalGpu, rows: Sequence[RunRow], node: str) -> GpuRow:
    granted = sum(row.memory_mib or 0 for row in rows)
    cores = sum(row.compute_percent or 0 for row in rows)
    return GpuRow(
        node=node,
        gpu=gpu.uuid,
        index=gpu.index,
        model=gpu.name,
        mode=Mode.QUOTA.value if rows else IDLE,
        health=HEALTHY,
        cordoned=False,
        memory_mib=gpu.memory_mib,
        memory_granted_mib=granted,
        memory_free_mib=max(0, gpu.memory_mib - granted),
        memory_used_mib=gpu.used_mib,
        memory_limit_mib=granted,
        memory_borrowed_mib=0,
        compute_percent=100,
        compute_granted_percent=cores,
        compute_free_percent=max(0, 100 - cores),
        busy_percent=gpu.busy_percent,
        slots=None,
        slots_granted=None,
        slots_free=None,
        pods=tuple(f"{row.user}/{row.run}" for row in rows),
        compute_meaning=compute.of_gpu(row.compute_meaning for row in rows),
    )


def _meaning(limit: DeviceLimit) -> str:
    if limit.compute_policy is ComputePolicy.WEIGHT:
        return compute.LENDS
    return compute.CAP if limit.cores_percent else ""


def _ended(run: Run) -> str:
    if run.left:
        pids = ", ".join(map(str, run.left))
        return f"lamina run was killed, and processes of it go on: {pids}; end them, then remove {run.folder}"
    return f"lamina run was killed, and could not clean up; remove {run.folder}"
