"""Which requests of which claims each container of a pod uses."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class ContainerUse(NamedTuple):
    """A claim by its name, and one of its requests; an empty one stands for all."""

    claim: str
    request: str


def claims_by_entry(pod: Mapping[str, Any]) -> dict[str, str]:
    """The claims by their entry in the spec of the pod; empty where the claim has not been made yet."""
    names = {each["name"]: each.get("resourceClaimName") or "" for each in pod["spec"].get("resourceClaims") or ()}
    made = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return names | {each["name"]: each.get("resourceClaimName") or "" for each in made if not names.get(each["name"])}


def claims_of(pod: Mapping[str, Any]) -> list[str]:
    """The names of the claims of a pod that have been made, the one for extended resources included."""
    extended = ((pod.get("status") or {}).get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    return [name for name in (*claims_by_entry(pod).values(), extended) if name]


def uses_by_container(pod: Mapping[str, Any]) -> dict[str, list[ContainerUse]]:
    """What each container uses, those by extended resources included."""
    status, spec = pod.get("status") or {}, pod["spec"]
    names = claims_by_entry(pod)
    found: dict[str, list[ContainerUse]] = {}
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        for use in (container.get("resources") or {}).get("claims") or ():
            found.setdefault(container["name"], []).append(
                ContainerUse(names.get(use["name"], ""), use.get("request") or "")
            )
    extended = status.get("extendedResourceClaimStatus") or {}
    for mapping in extended.get("requestMappings") or ():
        found.setdefault(mapping["containerName"], []).append(
            ContainerUse(extended["resourceClaimName"], mapping["requestName"])
        )
    return found


def entries_by_container(pod: Mapping[str, Any]) -> dict[str, set[str]]:
    """The entries in the spec of the pod that each container uses, whether their claims have been made or not."""
    spec = pod["spec"]
    return {
        container["name"]: {use["name"] for use in (container.get("resources") or {}).get("claims") or ()}
        for container in (*(spec.get("initContainers") or ()), *spec["containers"])
    }


def other_claims(pod: Mapping[str, Any], claim: str) -> dict[str, str]:
    """The names of other claims that a container uses together with this one, with that container."""
    return {
        use.claim: container
        for container, uses in uses_by_container(pod).items()
        if any(use.claim == claim for use in uses)
        for use in uses
        if use.claim not in ("", claim)
    }
