"""Which claims exceed a quota of their namespace, by the sums by which the controller lifts the gate of their pods."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from lamina.dialects.claim_gate import GATE
from lamina.ledger.claim_usage import ClaimUsage
from lamina.ledger.gated_pods import GatedPod, claims_to_allocate, waits_for_quota
from lamina.ledger.observed_claims import ObservedClaim
from lamina.ports.kube import Object

NOT_CHECKED = "waits for the controller to compare its claims with the quotas of its namespace"


class WaitingForQuotas:
    """Those of one reading of a cluster."""

    def __init__(self, usage: ClaimUsage, pods: Sequence[Object]) -> None:
        self._usage = usage
        self._pods = pods
        self._to_allocate: dict[str, list[ObservedClaim]] = {}

    def waits(self, pod: Object) -> str:
        """Why the pod keeps its gate, in words that follow its name; empty where its claims are within the quotas."""
        excess = self.excess(pod)
        return waits_for_quota(excess) if excess else ""

    def excess(self, pod: Object, more: Iterable[ObservedClaim] = ()) -> str:
        """Which quota the claims of the pod exceed, as a sentence, or nothing. `more` are claims that count too."""
        namespace, claims = pod["metadata"]["namespace"], self.claims(pod)
        if not claims or not self._usage.has_quota(namespace):
            return ""
        if namespace not in self._to_allocate:
            self._to_allocate[namespace] = claims_to_allocate(namespace, self._gated, self._usage.claims)
        return self._usage.excess(namespace, claims, [*self._to_allocate[namespace], *more])

    def claims(self, pod: Object) -> list[ObservedClaim]:
        """The claims of the pod that are known, or will be made of known templates."""
        return list(self._usage.claims.by_entry(pod).values())

    @cached_property
    def _gated(self) -> list[GatedPod]:
        labeled = (pod for pod in self._pods if GATE in (pod["metadata"].get("labels") or {}))
        return [found for pod in labeled if (found := GatedPod.of(pod)) is not None]


def waits_for_check(pod: Object) -> bool:
    """Whether the gate of claims alone keeps the pod from being scheduled."""
    gates = [each.get("name") for each in pod["spec"].get("schedulingGates") or ()]
    return gates == [GATE] and not pod["metadata"].get("deletionTimestamp")
