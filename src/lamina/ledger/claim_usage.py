"""What namespaces have by claims that no node has prepared yet, and which quota a claim exceeds.

Claims that are prepared count in the ledger, as their agents publish them. An allocated claim counts from its
allocation, and one that waits for an allocation from the moment at which its pod may be scheduled.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from lamina.configuration import Config
from lamina.core.claims import HeldClaim
from lamina.core.ledger import Taken
from lamina.dra.quota_amounts import ClaimAmounts, allocated_amounts, cluster_gpus, requested_amounts
from lamina.ledger.ledger import Ledger
from lamina.ledger.observed_claims import ObservedClaim, ObservedClaims
from lamina.ledger.quotas import ResourceQuotas

_Key = tuple[str, str, str]


class ClaimUsage(NamedTuple):
    """Reads what has been observed, and changes nothing."""

    ledger: Ledger
    quotas: ResourceQuotas
    claims: ObservedClaims
    config: Callable[[], Config]
    """What is in force now."""

    def has_quota(self, namespace: str) -> bool:
        """Whether a quota of the namespace limits GPU memory or compute."""
        return bool(self.quotas.of(namespace, self.config()))

    def excess(self, namespace: str, wanted: Iterable[ObservedClaim], scheduled: Iterable[ObservedClaim]) -> str:
        """Which quota the `wanted` claims exceed, as a sentence, or nothing. `scheduled` are those of other pods that
        kube-scheduler may allocate now."""
        prepared, own = self._prepared(), {claim.uid: claim for claim in wanted}
        counted = {claim.uid: claim for claim in scheduled}
        counted |= {claim.uid: claim for claim in self.claims if claim.results}
        others = [
            claim
            for uid, claim in counted.items()
            if claim.namespace == namespace and _key(claim) not in prepared and uid not in own
        ]
        more = self._sum(claim for claim in own.values() if _key(claim) not in prepared)
        held = self._sum(others)
        room = self.quotas.room(
            namespace,
            self.config(),
            lambda: self.ledger.totals.taken_in_namespace(namespace).plus(Taken(0, *held)),
        )
        return room.excess(*more, f"claim {', '.join(sorted(map(str, own.values())))}") if room else ""

    def _sum(self, claims: Iterable[ObservedClaim]) -> ClaimAmounts:
        total, ledger = ClaimAmounts(), self.ledger
        gpus = cluster_gpus(found for node in ledger.nodes() if (found := ledger.inventory(node)))
        for claim in claims:
            if claim.results:
                total = total.plus(allocated_amounts(claim.results, gpus))
            else:
                total = total.plus(requested_amounts(claim.requests, self.claims.is_own_class, gpus))
        return total

    def _prepared(self) -> set[_Key]:
        """The claims that count in the ledger."""
        return {_key(claim) for node in self.ledger.nodes() for claim in self.ledger.claims_on(node)}


def _key(claim: ObservedClaim | HeldClaim) -> _Key:
    """Namespace, name and UID: an agent that publishes the UID of another claim makes that one count no less."""
    return claim.namespace, claim.name, claim.uid
