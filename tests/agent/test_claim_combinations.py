"""A container with several requests or claims: it sees all of their devices, with the limits of each request."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from lamina.agent.cleanup.leftovers import reconcile
from lamina.agent.containers.paths import write_limits
from lamina.agent.resource_claims import preparer as preparer_module
from lamina.dra.names import cdi_name
from lamina.enforcement.limits import read_limits
from lamina.errors import BadInput, NotYet
from lamina.ports.kube import RESOURCE_CLAIMS
from tests.agent.claim_nodes import ClaimNode, dies, result
from tests.agent.node import GPU

A, B = result("a", memory="4Gi", cores=30), result("b", "gpu-1", memory="2Gi")
WHOLE = result("whole", "gpu-2")


@pytest.fixture
def node(tmp_path: Path) -> ClaimNode:
    return ClaimNode(tmp_path)


def use(claim: str, *requests: str) -> list[dict[str, str]]:
    return [{"name": claim, "request": request} for request in requests] or [{"name": claim}]


async def one_claim(node: ClaimNode, *uses: Any, results: Any = (A, B)) -> None:
    await node.using_pod("p", *uses)
    await node.claim("c", *results, pods=["p"])
    await node.prepare("c")


async def test_a_container_has_the_limits_of_both_requests(node: ClaimNode) -> None:
    node.claims = node.claim_preparer(write_limits)
    await one_claim(node, use("c"))
    limits = read_limits(node.places.containers / "uid-of-c_a" / "limits").devices
    assert [(each.uuid, each.memory_bytes >> 30, each.cores_percent) for each in limits] == [
        (GPU[0], 4, 30),
        (GPU[1], 2, 0),
    ]
    assert (node.visible("c", "a"), node.visible("c", "b")) == (GPU[0], f"{GPU[0]},{GPU[1]}")
    assert not (node.places.containers / "uid-of-c_b").exists(), "they have one account"
    (held,) = node.context.record.holdings
    assert held.bound is not None and held.bound.gpus == (GPU[0], GPU[1])
    assert len(node.context.record.held_claims[0].requests) == 2


async def test_a_container_with_one_of_them_sees_only_that(node: ClaimNode) -> None:
    await one_claim(node, use("c", "a", "b"), use("c", "a"))
    assert (node.visible("c", "a"), node.visible("c", "b")) == (GPU[0], f"{GPU[0]},{GPU[1]}")
    assert node.limits_of("c", "a") == node.limits_of("c", "b") == "a:0:4096 a:1:2048"


async def test_a_whole_gpu_next_to_a_share_has_a_limit_of_all_its_memory(node: ClaimNode) -> None:
    await one_claim(node, use("c", "whole"), use("c", "whole", "b"), results=(WHOLE, B))
    assert node.limits_of("c", "b") == "b:1:2048 b:2:32768"
    spec = node.spec(cdi_name("uid-of-c", "whole"))
    assert spec is not None and not any("limits" in each["containerPath"] for each in spec["mounts"])


async def test_whole_gpus_of_several_requests_are_visible_together(node: ClaimNode) -> None:
    await one_claim(node, use("c"), results=(WHOLE, result("other", "gpu-3")))
    assert node.visible("c", "other") == f"{GPU[2]},{GPU[3]}"
    assert not node.places.containers.exists() or list(node.places.containers.iterdir()) == []


async def test_two_shares_of_one_gpu_are_one_limit(node: ClaimNode) -> None:
    await one_claim(node, use("c"), results=(A, result("b", memory="2Gi", cores=20)))
    assert node.limits_of("c", "b") == "a:0:6144"


async def test_what_a_container_cannot_have_is_refused(node: ClaimNode) -> None:
    await node.using_pod("p", use("c", "a", "b"), use("c", "b"))
    await node.claim("c", A, B, pods=["p"])
    with pytest.raises(BadInput, match='container "c0" of pod p and container "c1" of pod p name request b last'):
        await node.prepare("c")
    assert (node.left(), node.context.record.claims) == ([], {})


async def two_claims(node: ClaimNode, *, others: tuple[str, ...] = ()) -> None:
    await node.using_pod("p", [*use("c"), *use("d"), *use("nic")], claims=("c", "d", "nic"))
    await node.claim("nic", result(driver="nic.example.com"), pods=["p"])
    await node.claim("c", result(memory="4Gi"), pods=["p"])
    await node.claim("d", result(device="gpu-1", memory="2Gi"), pods=["p", *others])


@pytest.mark.parametrize("order", [("c", "d"), ("d", "c")])
async def test_claims_of_one_container_are_prepared_together(node: ClaimNode, order: tuple[str, str]) -> None:
    await two_claims(node)
    await node.prepare(order[0])
    assert sorted(node.context.record.claimed) == sorted(GPU[:2]), "the other claim's GPU is not given to anyone else"
    before = node.disk()
    await node.prepare(order[1])
    assert node.disk() == before
    assert (node.visible("c"), node.visible("d")) == (GPU[0], f"{GPU[0]},{GPU[1]}")
    assert node.limits_of("d") == node.limits_of("c") == "gpu:0:4096 gpu:1:2048"
    node.start()
    await reconcile(node.context)
    await node.prepare("d")
    assert node.disk() == before


async def test_the_claim_with_the_account_goes_last(node: ClaimNode) -> None:
    await two_claims(node)
    await node.prepare("c")
    with pytest.raises(NotYet, match="claim default/c shares limits with default/d and is kept until"):
        await node.unprepare("c")
    await node.unprepare("d")
    assert (node.places.containers / "uid-of-c_gpu").exists()
    await node.unprepare("c")
    assert (node.left(), node.context.record.claims) == ([], {})


async def test_claims_stay_as_long_as_processes_of_their_account_run(
    node: ClaimNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two_claims(node)
    await node.prepare("c")
    monkeypatch.setattr(preparer_module, "is_in_use", lambda usage: usage.parent.name == "uid-of-c_gpu")
    with pytest.raises(NotYet, match="processes of claim default/d still run"):
        await node.unprepare("d")


async def test_a_claim_that_other_pods_use_too_cannot_be_combined(node: ClaimNode) -> None:
    await two_claims(node, others=("q",))
    for name in ("c", "d"):
        with pytest.raises(BadInput, match=r"uses the claims \w and \w, but other pods use d too"):
            await node.prepare(name)
    assert (node.left(), node.context.record.claims) == ([], {})


async def test_a_pod_that_comes_while_one_of_its_claims_goes_prepares_both_again(node: ClaimNode) -> None:
    await two_claims(node)
    await node.prepare("c")
    before = node.disk()
    await node.unprepare("d")
    await node.prepare("d")
    assert node.disk() == before


async def test_one_claim_without_room_keeps_the_other_from_starting(node: ClaimNode) -> None:
    await node.prepared("tenant", result(device="gpu-1", memory="31Gi"))
    await two_claims(node)
    with pytest.raises(NotYet, match="gpu-1 has no room for the claim as long as it is prepared for default/tenant"):
        await node.prepare("c")
    assert [str(each) for each in node.context.record.claims.values()] == ["default/tenant"]


@pytest.mark.parametrize("torn", [False, True])
async def test_an_agent_that_dies_at_any_step_of_preparing(tmp_path: Path, torn: bool) -> None:
    whole = ClaimNode(tmp_path / "whole")
    await two_claims(whole)
    await whole.prepare("c")
    expected = {path: text.replace(str(whole.root), "") for path, text in whole.disk().items()}
    for at in itertools.count():
        node = ClaimNode(tmp_path / str(at))
        await two_claims(node)
        died = await dies(node, at, "c", torn=torn, preparing=True)
        await node.claim("e", result(device="gpu-1", memory="31Gi"))
        await node.prepare("d")
        with pytest.raises(NotYet, match="has no room"):
            await node.prepare("e")
        await node.prepare("c")
        found = {path: text.replace(str(node.root), "") for path, text in node.disk().items()}
        assert {path: text for path, text in found.items() if not path.endswith(".tmp")} == expected, at
        if not died:
            assert at > 6
            return


@pytest.mark.parametrize("torn", [False, True])
async def test_an_agent_that_dies_at_any_step_of_removing(tmp_path: Path, torn: bool) -> None:
    for at in itertools.count():
        node = ClaimNode(tmp_path / str(at))
        await two_claims(node)
        await node.prepare("c")
        died = await dies(node, at, "d", torn=torn, preparing=False)
        await node.unprepare("d")
        await node.unprepare("c")
        assert (node.left(), node.context.record.claims) == ([], {}), at
        if not died:
            return


async def test_claims_with_shares_of_one_gpu_have_one_limit(node: ClaimNode) -> None:
    await node.using_pod("p", [*use("c"), *use("d")], claims=("c", "d"))
    await node.claim("c", result(memory="3Gi"), pods=["p"])
    await node.claim("d", result(memory="29Gi"), pods=["p"])
    await node.prepare("c")
    assert (node.limits_of("d"), node.visible("d"), node.visible("c")) == ("gpu:0:32768", GPU[0], GPU[0])


async def test_a_pod_that_is_refused_does_not_affect_one_that_has_the_claim(node: ClaimNode) -> None:
    """Kubelet prepares all claims again after it was restarted."""
    await node.using_pod("p", use("c"))
    await node.claim("c", result(memory="4Gi"), pods=["p"])
    first = await node.prepare("c")
    await node.using_pod("q", [*use("c"), *use("d")], claims=("c", "d"))
    await node.claim("d", result(device="gpu-1", memory="2Gi"), pods=["q"])
    reserved = [{"resource": "pods", "name": name, "uid": f"uid-of-{name}"} for name in ("p", "q")]
    await node.kube.patch(RESOURCE_CLAIMS, "c", {"status": {"reservedFor": reserved}}, namespace="default")
    with pytest.raises(BadInput, match="but other pods use c too"):
        await node.prepare("d")
    assert await node.prepare("c") == first
