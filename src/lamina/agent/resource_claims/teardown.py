"""Ends the MPS daemons of claims when no agent will come back. The record of claims says which there are."""

from pathlib import Path

from lamina.agent.claims.daemons import InRecord, daemon_homes
from lamina.agent.mps.lifecycle import DaemonLifecycle
from lamina.agent.state.record import Record
from lamina.errors import Outside
from lamina.ports.files import Files
from lamina.ports.mps import Mps
from lamina.ports.nvml import Nvml


async def end_claim_daemons(path: Path, mps: Mps, nvml: Nvml, files: Files) -> list[str]:
    """End the daemons in the record at `path`. Returns a sentence for each that could not be ended."""
    try:
        record = Record(path, files)
    except Outside as error:
        return [str(error)]
    lifecycle, failures = DaemonLifecycle(mps, nvml, InRecord(), files), []
    for claim in record.claims.values():
        for home, daemon in daemon_homes(claim):
            try:
                await lifecycle.stop(home, present=daemon.exclusive)
                files.remove_tree(home.root)
            except Outside as error:
                failures.append(f"the MPS daemon of claim {claim} on {home.gpu} may still be there: {error}")
    return failures
