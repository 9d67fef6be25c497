"""Pods that admission gave the scheduling gate of claims, from their creation until they have a node."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from lamina.core.pod_status import is_over
from lamina.dialects.claim_gate import GATE
from lamina.dra.containers import claims_by_entry
from lamina.ledger.observed_claims import ObservedClaim, ObservedClaims


class GatedPod(NamedTuple):
    """A pod without a node. `gates` are the names of those that it has now."""

    namespace: str
    name: str
    version: str
    claims: tuple[str, ...]
    unmade: bool
    gates: tuple[str, ...]

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> "GatedPod | None":
        """None for a pod that is over, or has a node."""
        meta, spec = pod["metadata"], pod["spec"]
        if is_over(pod) or spec.get("nodeName"):
            return None
        made = claims_by_entry(pod)
        return cls(
            namespace=meta["namespace"],
            name=meta["name"],
            version=meta["resourceVersion"],
            claims=tuple(name for name in made.values() if name),
            unmade=not all(made.values()),
            gates=tuple(each["name"] for each in spec.get("schedulingGates") or ()),
        )


def claims_to_allocate(namespace: str, pods: Iterable[GatedPod], claims: ObservedClaims) -> list[ObservedClaim]:
    """The claims of the namespace that kube-scheduler may allocate now, because their pods have lost the gate."""
    return [
        claim
        for pod in pods
        if pod.namespace == namespace and GATE not in pod.gates
        for claim in claims.named(namespace, pod.claims)
    ]


def waits_for_quota(excess: str) -> str:
    """Why a pod keeps the gate, in words that follow its name."""
    return f"waits until there is room in a quota of its namespace: {excess}"
