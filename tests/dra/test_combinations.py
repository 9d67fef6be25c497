"""Requests that containers use together: every combination of three requests by two containers, and what is refused."""

import itertools
from typing import Any

import pytest

from lamina.dra.claims import AllocatedClaim, ClaimedDevice
from lamina.dra.combinations import RequestRef, RequestUse, combinations, request_uses
from lamina.errors import BadInput

KINDS = {"gpu-0": "gpu", "gpu-1": "gpu", "gpu-2": "gpu", "gpu-0-mig-1g5gb-19-0": "mig"}
NAMES = ("a", "b", "c")


def claim(name: str, **devices: str) -> AllocatedClaim:
    """Each request has one device; `admin-` in front of its name is admin access."""
    listed = tuple(
        ClaimedDevice(
            request=request,
            device=device.removeprefix("admin-"),
            pool="node",
            memory_mib=1024,
            admin=device.startswith("admin-"),
        )
        for request, device in devices.items()
    )
    return AllocatedClaim(namespace="default", name=name, uid=f"uid-{name}", devices=listed, pods=("p",))


def pod(*containers: tuple[str, ...], name: str = "p") -> dict[str, Any]:
    """Each container names entries `claim` or `claim/request` of its pod."""
    specs = []
    for number, uses in enumerate(containers):
        named = [use.partition("/") for use in uses]
        entries = [{"name": entry} | ({"request": request} if request else {}) for entry, _, request in named]
        specs.append({"name": f"c{number}", "resources": {"claims": entries}})
    names = {use.partition("/")[0] for uses in containers for use in uses}
    entries = [{"name": each, "resourceClaimName": each} for each in sorted(names)]
    return {"metadata": {"name": name}, "spec": {"containers": specs, "resourceClaims": entries}}


def uses(claims: list[AllocatedClaim], *pods: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """The account of each request, and what is visible to the containers that name it last."""
    found = request_uses(claims, combinations(pods, claims), KINDS)
    return {_text(ref): (_text(use.account), " ".join(map(_text, use.visible))) for ref, use in found.items()}


def _text(ref: RequestRef) -> str:
    return f"{ref.claim.removeprefix('uid-')}/{ref.request}"


def test_requests_of_different_containers_have_nothing_in_common() -> None:
    three = claim("x", a="gpu-0", b="gpu-1", c="gpu-0")
    found = uses([three], pod(("x/a",), ("x/b",)), pod(("x/c",), name="q"))
    assert found == {f"x/{name}": (f"x/{name}", f"x/{name}") for name in NAMES}


def test_a_container_that_names_a_claim_has_all_of_its_requests() -> None:
    found = uses([claim("x", a="gpu-0", b="gpu-1")], pod(("x",)))
    assert found == {"x/a": ("x/a", "x/a"), "x/b": ("x/a", "x/a x/b")}


def test_requests_of_several_claims_have_one_account() -> None:
    found = uses([claim("x", a="gpu-0"), claim("y", a="gpu-1")], pod(("y", "x")))
    assert found == {"x/a": ("x/a", "x/a y/a"), "y/a": ("x/a", "y/a")}


def test_a_request_that_another_container_has_alone_keeps_its_view() -> None:
    found = uses([claim("x", a="gpu-0", b="gpu-1")], pod(("x/a", "x/b"), ("x/a",)))
    assert found == {"x/a": ("x/a", "x/a"), "x/b": ("x/a", "x/a x/b")}


SUBSETS = [list(each) for size in (1, 2, 3) for each in itertools.permutations(NAMES, size)]


@pytest.mark.parametrize("first", SUBSETS, ids="".join)
def test_every_pair_of_containers_is_right_or_refused(first: list[str]) -> None:
    """What a container sees is what it names, whatever another one does, and it never has another one's limits."""
    three = claim("x", a="gpu-0", b="gpu-1", c="gpu-2")
    for second in SUBSETS:
        both = [first, second]
        combined = combinations([pod(*(tuple(f"x/{name}" for name in each) for each in both))], [three])
        if first[-1] == second[-1] and set(first) != set(second):
            with pytest.raises(BadInput, match=f"name request {first[-1]} last, together with different requests"):
                request_uses([three], combined, KINDS)
            continue
        found = request_uses([three], combined, KINDS)
        for each in both:
            last: RequestUse = found[RequestRef("uid-x", each[-1])]
            assert {ref.request for ref in last.visible} == set(each)
            assert len({found[RequestRef("uid-x", name)].account for name in each}) == 1
        if not set(first) & set(second):
            accounts = [found[RequestRef("uid-x", each[0])].account for each in both]
            assert len(set(accounts)) == 2


@pytest.mark.parametrize(
    ("devices", "containers", "sentence"),
    [
        ({"a": "gpu-0", "b": "gpu-0"}, [("x",)], ""),
        ({"a": "gpu-0", "b": "gpu-0"}, [("x",), ("x/b", "x/a")], ""),
        (
            {"a": "gpu-0", "b": "gpu-0"},
            [("x/a", "x/b"), ("x/a",)],
            "c1.* uses only some of the requests a, b",
        ),
        ({"a": "gpu-0", "b": "admin-gpu-1"}, [("x",)], "c0.* uses a request with adminAccess together with others"),
        ({"a": "gpu-0", "b": "admin-gpu-1"}, [("x/a",), ("x/b",)], ""),
        ({"a": "gpu-1", "b": "gpu-0-mig-1g5gb-19-0"}, [("x",)], "c0.* uses MIG devices together with GPUs"),
    ],
)
def test_what_one_account_cannot_hold_is_refused(
    devices: dict[str, str], containers: list[tuple[str, ...]], sentence: str
) -> None:
    one = claim("x", **devices)
    if not sentence:
        uses([one], pod(*containers))
        return
    with pytest.raises(BadInput, match=sentence):
        uses([one], pod(*containers))
