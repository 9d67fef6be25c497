"""What agents left of MPS on a node, for the day when no agent will come back: ended, and compute modes given back.

The list of daemons tells which GPUs are ours. A daemon is gone already where it was a process of the agent's container;
the compute mode of its GPU stays until somebody sets it.
"""

from pathlib import Path

from lamina.agent.mps.kept import Kept
from lamina.agent.mps.starting import Steps
from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.mps import Home, Mps
from lamina.ports.nvml import Nvml


async def end_daemons(path: Path, mps: Mps, nvml: Nvml, files: Files) -> list[str]:
    """End the daemons that the list at `path` names. Returns a sentence for each GPU that stays as it is."""
    try:
        kept = Kept(path, files)
    except Outside as error:
        return [str(error)]
    steps, failures = Steps(mps, nvml, kept, files), []
    for gpu in sorted(kept.gpus):
        made = kept.get(gpu)
        assert made is not None
        try:
            await steps.down(Home(gpu, Path(made.root)), present=True)
        except Outside as error:
            failures.append(
                f"GPU {gpu} may still have the compute mode EXCLUSIVE_PROCESS, which was set for MPS ({error}); "
                f"nvidia-smi -i {gpu} -c DEFAULT gives it back"
            )
    return failures
