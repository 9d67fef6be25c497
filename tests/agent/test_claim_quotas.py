"""Claims count against the quotas of their namespace, although kube-scheduler has allocated them already."""

from pathlib import Path

import pytest

from lamina.agent.resource_claims.quotas import COUNTED_S
from lamina.errors import NotYet
from lamina.ports.kube import RESOURCE_QUOTAS, Unreachable
from tests.agent.claim_nodes import ClaimNode, result

MEMORY, CORES = "limits.nvidia.com/gpumem", "limits.nvidia.com/gpucores"


@pytest.fixture
def node(tmp_path: Path) -> ClaimNode:
    return ClaimNode(tmp_path)


async def quota(node: ClaimNode, hard: dict[str, str], used: dict[str, str], namespace: str = "default") -> None:
    """A quota as the controller leaves it."""
    made = {"metadata": {"name": "team", "namespace": namespace}, "spec": {"hard": hard}, "status": {"used": used}}
    await node.kube.create(RESOURCE_QUOTAS, made)


@pytest.mark.parametrize(
    ("hard", "used"),
    [
        ({MEMORY: "5096"}, {MEMORY: "1000"}),
        ({CORES: "30"}, {CORES: "0"}),
        ({"pods": "0"}, {}),
        ({"limits.nvidia.com/other": "0"}, {}),
    ],
)
async def test_what_a_quota_leaves_can_be_used(node: ClaimNode, hard: dict[str, str], used: dict[str, str]) -> None:
    await quota(node, hard, used)
    assert await node.prepared("c", result(memory="4Gi", cores=30))


@pytest.mark.parametrize(
    ("hard", "used", "sentence"),
    [
        (
            {MEMORY: "5095"},
            {MEMORY: "1000"},
            "claim default/c exceeds a quota of its namespace: quota team allows 5095 of nvidia.com/gpumem; "
            "1000 are used and the claim has 4096",
        ),
        ({CORES: "29"}, {CORES: "0"}, "allows 29 of nvidia.com/gpucores; 0 are used and the claim has 30"),
        ({MEMORY: "odd"}, {MEMORY: "0"}, "allows 0 of nvidia.com/gpumem"),
        ({MEMORY: "9999"}, {}, "the controller has not yet written how much nvidia.com/gpumem of quota team is used"),
        ({MEMORY: "9999"}, {MEMORY: "odd"}, "the controller has not yet written"),
    ],
)
async def test_what_exceeds_a_quota_is_refused_before_anything_is_made(
    node: ClaimNode, hard: dict[str, str], used: dict[str, str], sentence: str
) -> None:
    await quota(node, hard, used)
    with pytest.raises(NotYet, match=sentence):
        await node.prepared("c", result(memory="4Gi", cores=30))
    assert (node.left(), node.context.record.claims) == ([], {})


async def test_quotas_of_other_namespaces_do_not_concern_it(node: ClaimNode) -> None:
    await quota(node, {MEMORY: "0"}, {MEMORY: "0"}, namespace="other")
    assert await node.prepared("c")


async def test_access_without_a_share_takes_nothing(node: ClaimNode) -> None:
    await quota(node, {MEMORY: "0"}, {MEMORY: "0"})
    assert await node.prepared("c", result(adminAccess=True))


async def test_claims_that_the_status_may_not_have_yet_count_too(node: ClaimNode) -> None:
    await quota(node, {MEMORY: "8191"}, {MEMORY: "0"})
    await node.prepared("first", result(memory="4Gi"))
    with pytest.raises(NotYet, match="4096 are used and the claim has 4096"):
        await node.prepared("second", result(memory="4Gi"))
    status = {"status": {"used": {MEMORY: "4096"}}}
    await node.kube.patch(RESOURCE_QUOTAS, "team", status, namespace="default")
    await node.clock.advance(COUNTED_S)
    await node.prepared("third", result(memory="2Gi"))
    with pytest.raises(NotYet, match="6144 are used"):
        await node.prepare("second")


async def test_a_claim_that_is_prepared_stays_when_the_quota_shrinks(node: ClaimNode) -> None:
    ready = await node.prepared("c")
    await quota(node, {MEMORY: "0"}, {MEMORY: "4096"})
    assert await node.prepare("c") == ready


async def test_without_an_answer_nothing_is_prepared(node: ClaimNode) -> None:
    node.kube.failing["list"] = lambda resource, name: Unreachable("no answer") if resource == RESOURCE_QUOTAS else None
    with pytest.raises(Unreachable):
        await node.prepared("c")
    assert node.left() == []
