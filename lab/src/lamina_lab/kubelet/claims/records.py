"""Claims that are prepared, or being prepared, on this node: kubelet's DRA manager as plain data."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field


class PreparedDevice(Struct, frozen=True):
    """One device of a claim as its driver answered."""

    driver: str
    pool: str
    device: str
    requests: tuple[str, ...]
    cdi: tuple[str, ...]
    share: str | None = None

    def serves(self, request: str) -> bool:
        """Whether a container that names `request` gets the device. "" and a driver without names mean all."""
        return not request or not self.requests or request in {name.partition("/")[0] for name in self.requests}


class NodeClaim(Struct):
    """A claim on this node. `pods` are the UIDs of those that use it; `drivers` those that know of it."""

    uid: str
    namespace: str
    name: str
    pods: set[str] = field(default_factory=set)
    drivers: set[str] = field(default_factory=set)
    prepared: bool = False
    devices: list[PreparedDevice] = field(default_factory=list)


class ClaimUse(Struct, frozen=True):
    """What a container uses: a claim by name, and one of its requests or, with "", all."""

    claim: str
    request: str


def claim_names(pod: Mapping[str, Any]) -> dict[str, str]:
    """The names of the pod's claims by entry of its spec. An entry whose claim is not created yet is missing."""
    status = pod.get("status") or {}
    generated = {entry["name"]: entry.get("resourceClaimName") for entry in status.get("resourceClaimStatuses") or ()}
    names = {}
    for entry in pod["spec"].get("resourceClaims") or ():
        if name := entry.get("resourceClaimName") or generated.get(entry["name"]):
            names[entry["name"]] = name
    return names


def all_claims(pod: Mapping[str, Any]) -> list[str]:
    """The names of all claims of the pod, with the one for its extended resources."""
    extended = ((pod.get("status") or {}).get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return [*claim_names(pod).values(), *([extended] if extended else [])]


def uses(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[ClaimUse]:
    """The claims that one container uses."""
    names = claim_names(pod)
    for entry in (container.get("resources") or {}).get("claims") or ():
        yield ClaimUse(names[entry["name"]], entry.get("request") or "")
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
    for mapping in extended.get("requestMappings") or ():
        if mapping["containerName"] == container["name"]:
            yield ClaimUse(extended["resourceClaimName"], mapping["requestName"])
