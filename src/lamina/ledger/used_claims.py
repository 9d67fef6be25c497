"""Which of the ResourceClaims that an agent says it has prepared are those of pods on its node.

An agent could name any claim of any namespace, and so use up the quota of others. So a claim counts there from the
moment that a pod of the node is seen to use it until the agent no longer names it.
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from lamina.core.claims import HeldClaim
from lamina.dra.containers import uses_by_container
from lamina.ports.kube import Object


class ClaimName(NamedTuple):
    """A claim by its name."""

    namespace: str
    name: str


def claims_of(pod: Object) -> frozenset[ClaimName]:
    """The claims that the containers of a pod use. Those of a pod without claims are not read."""
    if not pod["spec"].get("resourceClaims") and not (pod.get("status") or {}).get("extendedResourceClaimStatus"):
        return frozenset()
    namespace: Any = pod["metadata"]["namespace"]
    uses = (use for uses in uses_by_container(pod).values() for use in uses)
    return frozenset(ClaimName(namespace, use.claim) for use in uses if use.claim)


_Identity = tuple[str, str, str]


class UsedClaims:
    """By node. Pods that use no claim cost nothing."""

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, frozenset[ClaimName]]] = {}
        """By node and UID of the pod."""
        self._seen: dict[str, set[_Identity]] = {}
        """By node, the claims that its agent names, and that a pod there was seen to use."""

    def observe(self, uid: str, claims: Collection[ClaimName], node: str) -> bool:
        """The pod on the node uses these claims. Returns whether it used others before."""
        before = self._pods.get(node, {}).get(uid, frozenset())
        if claims:
            self._pods.setdefault(node, {})[uid] = frozenset(claims)
        elif before:
            del self._pods[node][uid]
        return before != frozenset(claims)

    def keep(self, node: str, claims: Iterable[HeldClaim]) -> None:
        """The agent of the node names these, and no others any more."""
        if seen := self._seen.pop(node, set()) & set(map(_identity, claims)):
            self._seen[node] = seen

    def used(self, node: str, claims: Iterable[HeldClaim]) -> tuple[HeldClaim, ...]:
        """Those of these claims that are, or were while the agent named them, of pods on the node."""
        named = {name for names in self._pods.get(node, {}).values() for name in names}
        seen = self._seen.get(node, set())
        found = tuple(
            each for each in claims if _identity(each) in seen or ClaimName(each.namespace, each.name) in named
        )
        if found:
            self._seen[node] = seen | set(map(_identity, found))
        return found


def _identity(claim: HeldClaim) -> _Identity:
    return claim.uid, claim.namespace, claim.name
