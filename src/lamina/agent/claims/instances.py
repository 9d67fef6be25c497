"""The MIG instances of claims, made and destroyed by the same code as those of grants.

An instance exists from the preparation of its claim until the claim is unprepared and nothing uses it any more. Its
UUID is known only then, and may be another one after a restart of the machine.
"""

from collections.abc import Iterable, Mapping

from msgspec import structs

from lamina.agent.containers import cdi
from lamina.agent.context import NodeContext
from lamina.agent.mig.on_demand import OnDemandMig
from lamina.agent.state.holdings import Instance, PreparedClaim, PreparedRequest, instance_of
from lamina.core.gpus import Mode
from lamina.dra.names import cdi_name


class ClaimInstances:
    """Those of one node."""

    def __init__(self, node: NodeContext, on_demand: OnDemandMig) -> None:
        self._node = node
        self._on_demand = on_demand

    async def provide(self, claims: Iterable[PreparedClaim]) -> Mapping[Instance, str]:
        """Bring GPUs into the mode of recorded claims, and return the UUIDs of their MIG devices by instance.

        Raises NotYet, BadInput or Outside with the reason why that is not possible now.
        """
        listed = list(claims)
        shares = [share for claim in listed for share in claim.shares if share.mig or share.mode is not Mode.MIG]
        specs = [cdi.file_name(cdi_name(claim.uid, each.name)) for claim in listed for each in claim.requests]
        contents = [self._node.files.read(self._node.paths.cdi / name) or b"" for name in specs]
        started_with = {uuid for content in contents for uuid in cdi.visible_devices(content)}
        return await self._on_demand.prepare(shares, started_with)


def with_devices(claim: PreparedClaim, devices: Mapping[Instance, str]) -> PreparedClaim:
    """The claim with the MIG devices that its MPS daemons serve."""
    return structs.replace(claim, requests=tuple(_with_device(each, devices) for each in claim.requests))


def _with_device(request: PreparedRequest, devices: Mapping[Instance, str]) -> PreparedRequest:
    instance = instance_of(request.grant.shares[0])
    if request.mps is None or instance is None:
        return request
    return structs.replace(request, mps=structs.replace(request.mps, gpu=devices[instance]))
