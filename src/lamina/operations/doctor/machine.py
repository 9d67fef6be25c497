"""All findings of `lamina doctor` about this machine, where there is no cluster: what `lamina run` needs."""

import os
from collections.abc import Iterator

from lamina.enforcement.run_machine import VISIBLE
from lamina.errors import LaminaError
from lamina.operations.doctor.finding import Finding, State
from lamina.operations.local_machine import LocalMachine
from lamina.operations.verify.machine import Site, site
from lamina.operations.verify.run import facts
from lamina.operations.verify.views import views

_TRIED_MIB = 1024


def examine_machine(machine: LocalMachine) -> list[Finding]:
    """All findings. The limits of a short program on one GPU are tried, the one that `lamina run` would take."""
    return [*_driver(machine), *_limits(machine), _runs(machine)]


def _driver(machine: LocalMachine) -> Iterator[Finding]:
    if machine.no_driver:
        fix = "install NVIDIA's driver; without a GPU, try `lamina run --simulate T4`"
        yield Finding("driver", State.FAILED, machine.no_driver, fix)
        return
    listed = ", ".join(f"{gpu.index} {gpu.name} with {gpu.memory_mib} MiB" for gpu in machine.gpus)
    if listed:
        yield Finding("GPUs", State.OK, listed)
    else:
        yield Finding("GPUs", State.FAILED, "the driver knows none", "see whether nvidia-smi lists them")


def _limits(machine: LocalMachine) -> Iterator[Finding]:
    if machine.no_driver or not machine.gpus:
        return
    if VISIBLE in os.environ:
        yield Finding(VISIBLE, State.OK, f"it is {os.environ[VISIBLE]}, which bounds the choice of `lamina run`")
    try:
        with site("", None) as found:
            yield from _tried(found)
    except LaminaError as error:
        yield Finding("limits", State.FAILED, str(error), "see whether nvidia-smi and a CUDA program work")


def _tried(found: Site) -> Iterator[Finding]:
    for row in list(facts(found))[1:]:
        yield Finding("driver", State.OK if row.verdict == "reported" else State.FAILED, row.note)
    rows = list(views(found, _TRIED_MIB))
    wrong = [row for row in rows if row.verdict == "FAILED"]
    if wrong:
        said = "; ".join(f"{row.what}: {row.note or f'{row.measured} instead of {row.limit}'}" for row in wrong)
        yield Finding("limits", State.FAILED, said, "run `lamina verify`, which says more")
    elif all(row.verdict == "not tested" for row in rows):
        yield Finding("limits", State.FAILED, rows[0].note, "see whether a CUDA program works without `lamina run`")
    else:
        yield Finding("limits", State.OK, f"a program with {_TRIED_MIB} MiB of GPU {found.gpu.index} sees no more")


def _runs(machine: LocalMachine) -> Finding:
    ended = [run for run in machine.runs if not run.alive]
    if ended:
        names = ", ".join(run.name for run in ended)
        return Finding("runs", State.WARNING, f"ended without cleaning up: {names}", "see `lamina ps`")
    if machine.warnings:
        return Finding("runs", State.WARNING, "; ".join(machine.warnings), "see `lamina ps`")
    return Finding("runs", State.OK, f"{len(machine.runs)}, and their limits fit")
