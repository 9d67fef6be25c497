"""The agent may die at any step of a claim: the next one comes to the same end."""

import itertools
from pathlib import Path

import pytest

from lamina.agent.resource_claims.release import FORGOTTEN_S, ClaimReleaser
from lamina.errors import NotYet
from lamina.ports.kube import RESOURCE_CLAIMS
from tests.agent.claim_nodes import ClaimNode, dies, result

RESULTS = (result("a", memory="30Gi"), result("b", "gpu-1", memory="2Gi"))


@pytest.mark.parametrize("torn", [False, True])
async def test_prepare(tmp_path: Path, torn: bool) -> None:
    whole = ClaimNode(tmp_path / "whole")
    await whole.prepared("c", *RESULTS)
    expected = {path: text.replace(str(whole.root), "") for path, text in whole.disk().items()}
    for at in itertools.count():
        node = ClaimNode(tmp_path / str(at))
        await node.claim("c", *RESULTS)
        died = await dies(node, at, torn=torn, preparing=True)
        await node.prepare("c")
        found = {path: text.replace(str(node.root), "") for path, text in node.disk().items()}
        assert {path: text for path, text in found.items() if not path.endswith(".tmp")} == expected, at
        await node.claim("d", result())
        with pytest.raises(NotYet, match="has no room"):
            await node.prepare("d")
        if not died:
            assert at > 6
            return


@pytest.mark.parametrize("torn", [False, True])
async def test_a_claim_that_was_half_prepared_can_be_unprepared(tmp_path: Path, torn: bool) -> None:
    for at in itertools.count():
        node = ClaimNode(tmp_path / str(at))
        await node.claim("c", *RESULTS)
        died = await dies(node, at, torn=torn, preparing=True)
        await node.kube.delete(RESOURCE_CLAIMS, "c", namespace="default")
        await node.unprepare("c")
        assert (node.left(), node.context.record.claims) == ([], {}), at
        await node.prepared("d", result())
        if not died:
            return


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("again", [False, True])
async def test_unprepare(tmp_path: Path, torn: bool, again: bool) -> None:
    """Kubelet calls again; or it prepares the same claim again for another pod."""
    for at in itertools.count():
        node = ClaimNode(tmp_path / str(at))
        await node.prepared("c", *RESULTS)
        before = node.disk()
        died = await dies(node, at, torn=torn, preparing=False)
        await (node.prepare("c") if again else node.unprepare("c"))
        if again:
            assert {path: text for path, text in node.disk().items() if not path.endswith(".tmp")} == before, at
        else:
            assert (node.left(), node.context.record.claims) == ([], {}), at
        if not died:
            assert at > 4
            return


async def forgotten(node: ClaimNode, seconds: float) -> int:
    """How many claims are left so long after their pods are gone, of which kubelet knows nothing."""
    releaser = ClaimReleaser(node.context, node.claims, node.root / "cgroup")
    await releaser.reconcile()
    await node.clock.advance(seconds)
    await releaser.reconcile()
    return len(node.context.record.claims)


async def test_a_claim_that_is_gone_and_that_kubelet_has_forgotten_is_released(tmp_path: Path) -> None:
    node = ClaimNode(tmp_path)
    await node.prepared("kept")
    await node.prepared("deleted")
    await node.prepared("elsewhere")
    await node.kube.delete(RESOURCE_CLAIMS, "deleted", namespace="default")
    status = {"allocation": {"devices": {"results": [result(pool="node-2")]}}}
    await node.kube.patch(RESOURCE_CLAIMS, "elsewhere", {"status": status}, namespace="default")
    assert await forgotten(node, FORGOTTEN_S - 1) == 3
    assert await forgotten(node, FORGOTTEN_S) == 1
    assert node.limits_of("kept") == "gpu:0:4096"


async def test_a_claim_whose_pod_runs_is_not_released(tmp_path: Path) -> None:
    node = ClaimNode(tmp_path)
    await node.claim("c", pods=["p"])
    await node.prepare("c")
    await node.kube.delete(RESOURCE_CLAIMS, "c", namespace="default")
    group = node.root / "cgroup" / "kubepods" / "poduid-of-p"
    group.mkdir(parents=True)
    (group / "cgroup.events").write_text("populated 1\n")
    assert await forgotten(node, FORGOTTEN_S) == 1
    (group / "cgroup.events").write_text("populated 0\n")
    assert await forgotten(node, FORGOTTEN_S) == 0
