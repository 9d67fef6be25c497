"""Requests that one container uses together: several of a claim, or of several claims.

A container has one file with limits, so requests that are used together have one account: the limits of each device
stay those of its request. The runtime adds what belongs to each request, in the order in which the container names
them, and of a variable the last value counts. So the request that a container names last says what it sees.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lamina.dra.claims import AllocatedClaim, ClaimedDevice
from lamina.dra.containers import uses_by_container
from lamina.errors import BadInput


class RequestRef(Struct, frozen=True, order=True):
    """A request of a claim, by the claim's UID."""

    claim: str
    request: str


class Combination(Struct, frozen=True):
    """The requests that a container uses, in the order in which the runtime adds them."""

    container: str
    requests: tuple[RequestRef, ...]


class RequestUse(Struct, frozen=True):
    """`account` is the request whose account has this one's devices. `visible` are the requests of the containers that
    name this one last."""

    account: RequestRef
    visible: tuple[RequestRef, ...]


def combinations(pods: Iterable[Mapping[str, Any]], claims: Sequence[AllocatedClaim]) -> list[Combination]:
    """What the containers of the pods use of the claims, which are of one namespace."""
    known = {claim.name: claim for claim in claims}
    found = []
    for pod in pods:
        for container, uses in uses_by_container(pod).items():
            refs = [
                RequestRef(known[use.claim].uid, request)
                for use in uses
                if use.claim in known
                for request in known[use.claim].requests
                if use.request in ("", request)
            ]
            if refs:
                label = f'container "{container}" of pod {pod["metadata"]["name"]}'
                found.append(Combination(label, tuple(dict.fromkeys(refs))))
    return found


def request_uses(
    claims: Sequence[AllocatedClaim], combined: Sequence[Combination], kinds: Mapping[str, str]
) -> dict[RequestRef, RequestUse]:
    """How the requests of the claims reach containers. `kinds` are the types of devices by name.

    Raises BadInput with the container that cannot have what it uses.
    """
    devices = {RequestRef(claim.uid, request): each for claim in claims for request, each in claim.requests.items()}
    for each in combined:
        if len(each.requests) > 1:
            _check_devices(each, [device for ref in each.requests for device in devices[ref]], kinds)
    last: dict[RequestRef, Combination] = {}
    for each in combined:
        other = last.setdefault(each.requests[-1], each)
        if set(other.requests) != set(each.requests):
            raise BadInput(
                f"{other.container} and {each.container} name request {each.requests[-1].request} last, together with "
                "different requests; name it first in one of them"
            )
    accounts = _accounts(devices, combined)
    _check_same_device(devices, accounts, combined)
    return {
        ref: RequestUse(accounts[ref], tuple(sorted(last[ref].requests)) if ref in last else (ref,)) for ref in devices
    }


def _check_devices(used: Combination, devices: Sequence[ClaimedDevice], kinds: Mapping[str, str]) -> None:
    if len({device.admin for device in devices}) > 1:
        raise BadInput(
            f"{used.container} uses a request with adminAccess together with others; give it to a container of its own"
        )
    if len({kinds.get(device.device, "gpu") for device in devices}) > 1:
        raise BadInput(
            f"{used.container} uses MIG devices together with GPUs, which CUDA cannot; use different containers"
        )


def _accounts(requests: Iterable[RequestRef], combined: Iterable[Combination]) -> dict[RequestRef, RequestRef]:
    """The first request of those that are used together, directly or by way of others, by each of them."""
    accounts = {ref: ref for ref in requests}
    for each in combined:
        joined = {accounts[ref] for ref in each.requests}
        first = min(joined)
        accounts = {ref: first if account in joined else account for ref, account in accounts.items()}
    return accounts


def _check_same_device(
    devices: Mapping[RequestRef, Sequence[ClaimedDevice]],
    accounts: Mapping[RequestRef, RequestRef],
    combined: Sequence[Combination],
) -> None:
    """Shares of one device in one account are one limit, so every container must use all of them or none."""
    holders: dict[tuple[RequestRef, str], set[RequestRef]] = {}
    for ref, listed in devices.items():
        for device in listed:
            holders.setdefault((accounts[ref], device.device), set()).add(ref)
    for (_, name), refs in holders.items():
        for each in combined:
            if 0 < len(refs & set(each.requests)) < len(refs):
                names = ", ".join(sorted(ref.request for ref in refs))
                raise BadInput(
                    f"{each.container} uses only some of the requests {names}, which have shares of {name} and which "
                    "another container uses together; use all of them in each, or ask for different devices"
                )
