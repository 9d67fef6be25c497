"""The MPS service of one node, from its start to SIGTERM. Daemons live on where nothing else ends them: outside of a
container."""

import asyncio
import logging
import signal
from pathlib import Path

from lamina.mps.local_daemons import local_daemons
from lamina.mps.service import MpsService

log = logging.getLogger(__name__)


async def run(socket: Path, *, control: str, shm_mib: int, multi_user: bool = False) -> None:
    """Serve at `socket`. Raises BadInput or Outside if it cannot start."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    service = MpsService(local_daemons(control, shm_mib, multi_user=multi_user))
    async with service.listening(socket):
        log.info("The MPS service listens at %s", socket)
        await stop.wait()
    log.info("The MPS service has stopped")
