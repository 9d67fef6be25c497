"""Quotas of namespaces on GPU memory and compute, for claims.

kube-scheduler allocates claims and knows no such quota, so a claim that exceeds one is refused when it is prepared.
What a namespace holds on all nodes is in the status of its quotas, which the controller writes from the inventories.
Claims that this node has prepared within `COUNTED_S` are added, because that status may not have them yet.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lamina.agent.context import NodeContext
from lamina.agent.state.holdings import PreparedClaim
from lamina.dialects import quota_names
from lamina.dialects.quota_limits import quota_limits, quota_usage
from lamina.errors import NotYet
from lamina.ports.kube import RESOURCE_QUOTAS, Object

COUNTED_S = 15.0
"""By then the controller has read the inventory and written the status. Kubelet asks again for a refused claim."""


class _Amounts(NamedTuple):
    memory_mib: int = 0
    cores: int = 0


class _Recent(NamedTuple):
    namespace: str
    amounts: _Amounts
    at: float


class ClaimQuotas:
    """The quotas that concern the claims of one node."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self._recent: dict[str, _Recent] = {}

    async def require_room(self, *claims: PreparedClaim) -> None:
        """Raises NotYet with the quota that the claims, which are of one namespace, exceed together, and Outside."""
        wanted = _sum(map(_amounts, claims))
        if not any(wanted):
            return
        uncounted = self._uncounted(claims)
        for quota in (await self._node.kube.list(RESOURCE_QUOTAS, namespace=claims[0].namespace)).items:
            if reason := self._excess(quota, wanted, uncounted):
                raise NotYet(f"claim {', '.join(map(str, claims))} exceeds a quota of its namespace: {reason}")

    def prepared(self, claim: PreparedClaim) -> None:
        """The claim has been prepared now."""
        self._recent[claim.uid] = _Recent(claim.namespace, _amounts(claim), self._node.clock.monotonic())

    def _uncounted(self, claims: Sequence[PreparedClaim]) -> _Amounts:
        since = self._node.clock.monotonic() - COUNTED_S
        self._recent = {uid: each for uid, each in self._recent.items() if each.at > since}
        own, namespace = {claim.uid for claim in claims}, claims[0].namespace
        return _sum(
            each.amounts for uid, each in self._recent.items() if uid not in own and each.namespace == namespace
        )

    def _excess(self, quota: Object, wanted: _Amounts, uncounted: _Amounts) -> str:
        names, hard = quota_names(self._node.config), quota_limits(quota, self._node.config)
        used = quota_usage(quota, self._node.config)
        for name, most, held, recent, more in (
            (names.memory, hard.memory_mib, used.memory_mib, uncounted.memory_mib, wanted.memory_mib),
            (names.cores, hard.cores, used.cores, uncounted.cores, wanted.cores),
        ):
            if most is None or more == 0:
                continue
            if held is None:
                return f"the controller has not yet written how much {name} of quota {hard.name} is used"
            if held + recent + more > most:
                return f"quota {hard.name} allows {most} of {name}; {held + recent} are used and the claim has {more}"
        return ""


def _amounts(claim: PreparedClaim) -> _Amounts:
    return _Amounts(sum(share.memory_mib for share in claim.shares), sum(share.cores for share in claim.shares))


def _sum(amounts: Iterable[_Amounts]) -> _Amounts:
    listed = list(amounts)
    return _Amounts(sum(each.memory_mib for each in listed), sum(each.cores for each in listed))
