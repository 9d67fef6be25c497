"""How containers share the devices of a claim, as its parameters say: by MPS, or by turns of a certain length."""

from typing import NamedTuple

from lamina.agent.claims.daemons import ClaimDaemons
from lamina.agent.nvidia.time_slices import TimeSliceManager
from lamina.agent.state.holdings import PreparedClaim


class ClaimSharing(NamedTuple):
    """The daemons of claims, and the lengths of turns. The record has the claim before and after each call."""

    daemons: ClaimDaemons
    time_slices: TimeSliceManager

    async def start(self, claim: PreparedClaim) -> None:
        """Make it ready. Raises NotYet and Outside."""
        await self.daemons.start(claim)
        lengths = {
            share.gpu: each.interval
            for each in claim.requests
            if each.interval is not None
            for share in each.grant.shares
        }
        await self.time_slices.ensure(str(claim), lengths)

    async def stop(self, claim: PreparedClaim) -> None:
        """End its daemons. Turns have their usual length again once the claim is not recorded any more."""
        await self.daemons.stop(claim)
