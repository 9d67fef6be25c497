"""What is offered to claims is what they are prepared for: both ask which GPUs pods have by the device plugins."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import NotYet
from lamina.ports.kube import GRANTS, PODS
from tests.agent.claim_nodes import ClaimNode, result
from tests.agent.node import GPU, RESOURCE, container, pod_watch, share
from tests.waiting import canceled, until


@pytest.fixture
def node(tmp_path: Path) -> ClaimNode:
    return ClaimNode(tmp_path)


async def offered(node: ClaimNode) -> set[str]:
    await node.offer.refresh()
    return {device.name for device in node.offer.free}


async def bound(node: ClaimNode) -> None:
    """A pod that has a grant for GPU 0 and waits for its start."""
    await node.pod("p", container("main", share(0)))


async def admitted(node: ClaimNode) -> None:
    await bound(node)
    await node.admit("p", {"main": ["ticket-0"]})


async def prepared(node: ClaimNode) -> None:
    await admitted(node)
    await node.preparer.prepare(["ticket-0"])


async def nothing(node: ClaimNode) -> None:
    pass


async def claimed_first(node: ClaimNode) -> None:
    """A claim has the GPU for which the pod waits."""
    await node.prepared("first", result(device="gpu-0", memory="1Gi"))
    await admitted(node)


async def ended(node: ClaimNode) -> None:
    uid = await node.pod("p", container("main", share(0)))
    await node.offer.refresh()
    node.doors.observe_end(uid)


@pytest.mark.parametrize("before", [nothing, bound, admitted, prepared, claimed_first, ended])
@pytest.mark.parametrize("gpu", [0, 1])
async def test_a_claim_is_sent_only_where_it_can_be_prepared(node: ClaimNode, before: Any, gpu: int) -> None:
    await before(node)
    name = f"gpu-{gpu}"
    is_offered = name in await offered(node)
    assert is_offered == (gpu == 1 or before in (nothing, ended))
    await node.claim("later", result(device=name, memory="1Gi"))
    if is_offered:
        await node.prepare("later")
    else:
        with pytest.raises(NotYet, match=f"{GPU[0]} is in use"):
            await node.prepare("later")


async def test_a_grant_is_read_once(node: ClaimNode, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, get = [], node.kube.get

    async def counted(resource: Any, name: str, **more: Any) -> Any:
        asked.append(resource)
        return await get(resource, name, **more)

    await bound(node)
    monkeypatch.setattr(node.kube, "get", counted)
    for _ in range(3):
        assert "gpu-0" not in await offered(node)
    assert asked.count(GRANTS) == 1


async def test_nothing_is_offered_or_prepared_before_the_pods_are_known(node: ClaimNode) -> None:
    node.doors.synced = False
    await node.offer.refresh()
    assert not node.offer.known
    await node.claim("c")
    with pytest.raises(NotYet, match="has not read the pods of the node yet"):
        await node.prepare("c")


async def test_the_watch_of_pods_tells_the_doors(node: ClaimNode) -> None:
    await bound(node)
    limits = {"resources": {"limits": {RESOURCE: "1"}}}
    for name, spec in (("asks", limits), ("other", {})):
        containers = [{"name": "main", **spec}]
        meta = {"name": name, "namespace": "default"}
        await node.kube.create(PODS, {"metadata": meta, "spec": {"nodeName": node.name, "containers": containers}})
    node.doors.synced = False
    seen: dict[str, str] = {}
    node.doors.observe = lambda uid, namespace, name: seen.__setitem__(name, uid)  # type: ignore[method-assign]
    node.doors.observe_end = lambda uid: seen.pop("asks")  # type: ignore[method-assign]
    task = asyncio.create_task(pod_watch(node, doors=node.doors).run())
    await until(lambda: node.doors.synced, task=task)
    assert [*seen] == ["asks"]
    await node.kube.delete(PODS, "asks", namespace="default")
    await until(lambda: not seen, task=task)
    await canceled(task)
