"""MPS for containers with grants, each with its own part of the GPU's memory and processors.

A GPU gets its daemon when the first of them is prepared, and loses it when the last one has ended.
"""

from collections.abc import Iterable

from lamina.agent.mps.client_edits import NO_EDITS, ClientEdits, share_edits
from lamina.agent.mps.daemons import DaemonSupervisor
from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant, Share
from lamina.errors import NotYet


class GrantClients:
    """The clients with grants of one node."""

    def __init__(self, daemons: DaemonSupervisor) -> None:
        self._daemons = daemons

    def edits(self, container: ContainerGrant, resource: str) -> ClientEdits:
        """What a container with tickets of `resource` needs. Raises NotYet for a grant that no client can have."""
        shares = [share for share in container.shares if share.mode is Mode.MPS]
        if not shares:
            return NO_EDITS
        if len(container.shares) > 1:
            raise NotYet(f'container "{container.name}": a client of MPS has one GPU, and the grant has several')
        return share_edits(resource, self._daemons.home(shares[0].gpu), shares[0])

    async def vacate(self, shares: Iterable[Share]) -> None:
        """End daemons that nothing uses on GPUs that are granted in another mode. Raises NotYet, and Outside."""
        await self._daemons.vacate(sorted({share.gpu for share in shares if share.mode is not Mode.MPS}))

    async def provide(self, shares: Iterable[Share]) -> None:
        """Have the daemons of these shares run; the record has them already. Raises NotYet with the reason."""
        await self._daemons.provide(sorted({share.gpu for share in shares if share.mode is Mode.MPS}))
