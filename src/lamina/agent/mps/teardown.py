"""Ends the MPS daemons that agents left on a node, and restores compute modes, when no agent will come back.

The journal says which GPUs have one. A daemon that ran in the agent's container is gone already, but the compute mode
of its GPU stays until it is set again.
"""

from pathlib import Path

from lamina.agent.mps.journal import DaemonJournal
from lamina.agent.mps.lifecycle import DaemonLifecycle
from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.mps import Home, Mps
from lamina.ports.nvml import Nvml


async def end_daemons(path: Path, mps: Mps, nvml: Nvml, files: Files) -> list[str]:
    """End the daemons in the journal at `path`. Returns a sentence for each GPU that could not be restored."""
    try:
        journal = DaemonJournal(path, files)
    except Outside as error:
        return [str(error)]
    lifecycle, failures = DaemonLifecycle(mps, nvml, journal, files), []
    for gpu in sorted(journal.gpus):
        daemon = journal.get(gpu)
        assert daemon is not None
        try:
            await lifecycle.stop(Home(gpu, Path(daemon.root)), present=True)
        except Outside as error:
            failures.append(
                f"{gpu} may still have the compute mode EXCLUSIVE_PROCESS, which was set for MPS: {error}; "
                f"reset it with nvidia-smi -i {gpu} -c DEFAULT"
            )
    return failures
