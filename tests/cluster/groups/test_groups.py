"""Groups are placed completely or not at all, and the controller makes room for them on several nodes.

Needs KUBE_BIN_DIR with kube-apiserver, kube-scheduler and etcd, for Kubernetes' own groups those of 1.36 or later.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.control_plane import NoPrograms
from lamina.dialects.groups import KUBERNETES, SCHEDULER_PLUGINS
from tests.cluster.deciding import all_placed, placed
from tests.cluster.groups.scheduled import NODE_NAMES, GroupCluster, group_cluster
from tests.waiting import until
from tests.worlds.objects import MIB


@pytest.fixture(params=[SCHEDULER_PLUGINS, KUBERNETES])
async def groups(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[GroupCluster]:
    try:
        async with group_cluster(tmp_path, request.param) as made:
            yield made
    except NoPrograms as error:
        pytest.skip(str(error))


async def members(groups: GroupCluster, group: str, count: int, *, memory: int = MIB, priority: int = 0) -> list[str]:
    await groups.group(group, count)
    names = [f"{group}-{number}" for number in range(count)]
    for name in names:
        await groups.pod(name, memory=memory, priority=priority, group=group)
    return names


async def test_a_group_is_placed_completely_or_not_at_all(groups: GroupCluster) -> None:
    await groups.pod("alone", memory=MIB)
    await all_placed(groups.kube, ["alone"])
    three = await members(groups, "three", 3)

    async def explained() -> bool:
        messages = [await groups.message(name) for name in three]
        return any("pod group default/three is placed completely or not at all" in message for message in messages)

    await until(explained, "no member of the group says why it waits")
    assert await placed(groups.kube, three) == {}
    await groups.delete("alone")
    assert set((await all_placed(groups.kube, three)).values()) == set(NODE_NAMES)


async def test_room_is_made_for_all_members_of_a_group_and_for_no_more(groups: GroupCluster) -> None:
    low = [f"low-{number}" for number in range(6)]
    for name in low:
        await groups.pod(name, memory=MIB // 2)
    await all_placed(groups.kube, low)
    high = await members(groups, "high", 2, priority=10)
    nodes = set((await all_placed(groups.kube, high)).values())
    assert len(nodes) == 2
    left = await placed(groups.kube, low)
    assert len(left) == 2 and not nodes & set(left.values())


async def test_a_group_is_placed_soon_after_its_last_member_is_there(groups: GroupCluster) -> None:
    """kube-scheduler by itself would try the refused members again after five minutes."""
    if groups.api == KUBERNETES:
        pytest.skip("kube-scheduler tries no member of Kubernetes' own groups before all are there")
    await groups.group("late", 2)
    await groups.pod("late-0", memory=MIB, group="late")

    async def refused() -> str:
        return await groups.message("late-0")

    await until(refused, "kube-scheduler does not say why the first member waits")
    await groups.pod("late-1", memory=MIB, group="late")
    await all_placed(groups.kube, ["late-0", "late-1"])
