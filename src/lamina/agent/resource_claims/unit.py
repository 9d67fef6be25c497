"""The claims that are prepared in one step: those whose requests a container uses together.

Kubelet asks for one claim after the other, but a container's limits are one file, so all of them must be known first.
When kubelet asks, all claims of a pod are allocated and reserved for it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from lamina.agent.context import NodeContext
from lamina.dra.claims import AllocatedClaim, read_claim
from lamina.dra.combinations import Combination, combinations
from lamina.dra.containers import other_claims
from lamina.errors import BadInput, NotYet
from lamina.ports.kube import PODS, RESOURCE_CLAIMS, NotFound, Object


class ClaimRef(NamedTuple):
    """A claim as kubelet names it."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ClaimUnit(NamedTuple):
    """`claims` are all of the unit; `combined` is what containers use of them."""

    claims: tuple[AllocatedClaim, ...]
    combined: tuple[Combination, ...]


class UnitReader:
    """Reads claims, and the pods for which they are reserved, from the API server. Every call raises Outside."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node

    async def claim(self, ref: ClaimRef) -> AllocatedClaim:
        """The claim that kubelet named. Raises NotYet if it is not allocated here, and BadInput if it is odd."""
        found = await self._get(ref.namespace, ref.name)
        if found is None or found["metadata"]["uid"] != ref.uid:
            raise NotYet(f"claim {ref} with the UID {ref.uid} does not exist in Kubernetes")
        return self._here(found)

    async def unit(self, asked: AllocatedClaim) -> ClaimUnit:
        """The unit of a claim. Raises BadInput for what containers cannot have."""
        claims, pods = {asked.name: asked}, await self._pods(asked)
        new = [asked]
        while new:
            claim = new.pop()
            for pod in pods.values():
                for name, container in other_claims(pod, claim.name).items():
                    if name in claims or (other := await self._allocated_here(asked.namespace, name)) is None:
                        continue
                    _check_unshared(pod, container, claim, other)
                    claims[name] = other
                    new.append(other)
        unit = tuple(sorted(claims.values(), key=lambda claim: claim.uid))
        return ClaimUnit(unit, tuple(combinations(pods.values(), unit)))

    async def _pods(self, claim: AllocatedClaim) -> Mapping[str, Object]:
        found = {}
        for name in claim.pods:
            try:
                found[name] = await self._node.kube.get(PODS, name, namespace=claim.namespace)
            except NotFound:
                continue
        return found

    async def _allocated_here(self, namespace: str, name: str) -> AllocatedClaim | None:
        """A claim that has devices of this driver here."""
        found = await self._get(namespace, name)
        try:
            return None if found is None else self._here(found)
        except NotYet:
            return None

    async def _get(self, namespace: str, name: str) -> Object | None:
        try:
            return await self._node.kube.get(RESOURCE_CLAIMS, name, namespace=namespace)
        except NotFound:
            return None

    def _here(self, found: Object) -> AllocatedClaim:
        return read_claim(found, self._node.settings.dra_driver, self._node.node)


def _check_unshared(pod: Object, container: str, claim: AllocatedClaim, other: AllocatedClaim) -> None:
    """Their limits are one file, which would be that of other pods too."""
    for each in (claim, other):
        if each.pods != (pod["metadata"]["name"],):
            raise BadInput(
                f'container "{container}" of pod {pod["metadata"]["name"]} uses the claims {claim.name} and '
                f"{other.name}, but other pods use {each.name} too; ask for all devices of the container in one claim"
            )
