"""The status of an Inventory says what is free, and is written by the controller alone."""

import pytest
from msgspec import structs

from lamina.agent.state.cluster import ClusterClient
from lamina.controller.capacity.inventory_status import MAX_WRITES, WRITES_WHEN_BUSY, InventoryStatuses
from lamina.core.gpus import Gpu
from lamina.core.ledger import Taken
from lamina.ledger.holds import Hold, Why
from lamina.ports.kube import INVENTORIES, NotFound, Object, Unreachable
from lamina.ports.kube.fake import FakeKube
from tests.controller.binders import Bench
from tests.worlds.objects import gpus, inventory, inventory_object

OF_TWO = {"models": "2 x V100-SXM2-32GB", "memoryMiB": 65536}
EMPTY = {**OF_TWO, "freeMemoryMiB": 65536, "freeCores": 200, "largestFreeMiB": 32768}


class Statuses:
    """The step of the controller, after it has observed what the API server has."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.observed: dict[str, Object] = {}
        self.nominated: list[Hold] = []
        self._statuses = InventoryStatuses(
            self.bench.kube, self.bench.cluster_state, self.observed, self.bench.clock, lambda: self.nominated
        )

    async def offer(self, node: str, *offered: Gpu) -> None:
        self.bench.offer(node, *offered)
        await self.bench.kube.create(INVENTORIES, inventory_object(node, *offered))

    async def step(self) -> dict[str, Object]:
        await self.observe()
        await self._statuses.step()
        return await self.observe()

    async def observe(self) -> dict[str, Object]:
        items = (await self.bench.kube.list(INVENTORIES)).items
        self.observed |= {each["metadata"]["name"]: each.get("status") or {} for each in items}
        return {
            node: {key: value for key, value in status.items() if key != "survivors"}
            for node, status in self.observed.items()
        }

    async def version(self, node: str) -> str:
        found: str = (await self.bench.kube.get(INVENTORIES, node))["metadata"]["resourceVersion"]
        return found


async def test_the_status_follows_what_is_granted() -> None:
    statuses = Statuses()
    await statuses.offer("node-0", *gpus(2))
    assert await statuses.step() == {"node-0": EMPTY}
    pod = await statuses.bench.pod("p", gpu=1, gpumem=30000, gpucores=40)
    assert await statuses.bench.bind(pod) == ""
    granted = {"freeMemoryMiB": 35536, "freeCores": 160, "largestFreeMiB": 32768}
    assert await statuses.step() == {"node-0": {**OF_TWO, **granted}}
    statuses.bench.ledger.remove_pod(pod["metadata"]["uid"], statuses.bench.clock.monotonic())
    assert await statuses.step() == {"node-0": EMPTY}


async def test_a_whole_gpu_and_one_that_takes_no_shares_are_not_free() -> None:
    statuses = Statuses()
    first, sick, closed = gpus(3)
    sick, closed = structs.replace(sick, healthy=False, reason="XID 79"), structs.replace(closed, cordoned=True)
    await statuses.offer("node-0", first, sick, closed)
    half = {"freeMemoryMiB": 32768, "freeCores": 100, "largestFreeMiB": 32768}
    of_three = {"models": "3 x V100-SXM2-32GB", "memoryMiB": 98304}
    assert await statuses.step() == {"node-0": {**of_three, **half}}
    assert await statuses.bench.bind(await statuses.bench.pod("whole", gpu=1)) == ""
    assert await statuses.step() == {"node-0": {**of_three, **dict.fromkeys(half, 0)}}


async def test_a_node_that_takes_no_shares_any_longer_has_nothing_free() -> None:
    statuses = Statuses()
    await statuses.offer("node-0", *gpus(2))
    await statuses.step()
    statuses.bench.ledger.remove_inventory("node-0")
    assert await statuses.step() == {"node-0": {**dict.fromkeys(EMPTY, 0), "models": ""}}


async def test_a_node_with_several_models_has_all_of_them() -> None:
    statuses = Statuses()
    first, second = gpus(2)
    await statuses.offer("node-0", first, structs.replace(second, model="T4", memory_mib=15360, capacity_mib=15360))
    status = (await statuses.step())["node-0"]
    assert (status["models"], status["memoryMiB"]) == ("1 x V100-SXM2-32GB, 1 x T4", 48128)


async def test_nothing_is_written_twice() -> None:
    statuses = Statuses()
    await statuses.offer("node-0", *gpus(2))
    await statuses.step()
    before = await statuses.version("node-0")
    await statuses.step()
    assert await statuses.version("node-0") == before


@pytest.mark.parametrize("nodes", [1, MAX_WRITES])
async def test_a_round_writes_as_many_as_came_to_differ(nodes: int) -> None:
    statuses = Statuses()
    await offer_many(statuses, nodes)
    assert {} not in (await statuses.step()).values()


async def test_while_more_change_than_a_round_could_write_it_writes_a_few() -> None:
    statuses = Statuses()
    await offer_many(statuses, MAX_WRITES + 1)
    assert list((await statuses.step()).values()).count({}) == MAX_WRITES + 1 - WRITES_WHEN_BUSY
    await offer_many(statuses, MAX_WRITES + 1, first=100)
    written = await statuses.step()
    assert list(written.values()).count({}) == 2 * (MAX_WRITES + 1 - WRITES_WHEN_BUSY)
    assert {} not in [written[f"node-{number:03}"] for number in range(2 * WRITES_WHEN_BUSY)], "in their order"


async def test_the_next_rounds_write_what_is_left() -> None:
    statuses = Statuses()
    await offer_many(statuses, 2 * MAX_WRITES)
    for left in (2 * MAX_WRITES - WRITES_WHEN_BUSY, MAX_WRITES - WRITES_WHEN_BUSY, 0):
        assert list((await statuses.step()).values()).count({}) == left


async def offer_many(statuses: Statuses, nodes: int, first: int = 0) -> None:
    for number in range(first, first + nodes):
        await statuses.offer(f"node-{number:03}", *gpus(1, prefix=f"GPU-{number}"))


async def test_what_cannot_be_written_is_tried_again() -> None:
    statuses = Statuses()
    await statuses.offer("node-0", *gpus(2))
    assert isinstance(statuses.bench.kube, FakeKube)
    statuses.bench.kube.failing["patch"] = lambda resource, name: Unreachable("the server is away")
    assert await statuses.step() == {"node-0": {}}
    statuses.bench.kube.failing.clear()
    assert await statuses.step() == {"node-0": EMPTY}


async def test_an_agent_keeps_the_status() -> None:
    statuses = Statuses()
    await statuses.offer("node-0", *gpus(2))
    await statuses.step()
    agent = ClusterClient(statuses.bench.kube, "node-0", statuses.bench.context.set_aside)
    assert await agent.write_inventory(inventory("node-0", *gpus(1)))
    assert await statuses.observe() == {"node-0": EMPTY}


async def test_where_inventories_have_no_status_it_is_tried_once_for_each_change(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A CustomResourceDefinition of an older version has no subresource of that name."""
    statuses = Statuses()
    kube = statuses.bench.kube
    kube.failing["patch"] = lambda resource, name: NotFound("the server could not find the requested resource")
    await statuses.offer("node-0", *gpus(2))

    def tried() -> int:
        return sum(verb == "patch" for verb, *_ in kube.calls)

    for _ in range(5):
        await statuses.step()
    assert tried() == 1 and caplog.text.count("is of an older version") == 1
    assert await statuses.bench.bind(await statuses.bench.pod("p", gpu=1, gpumem=30000)) == ""
    for _ in range(5):
        await statuses.step()
    assert tried() == 2 and caplog.text.count("is of an older version") == 1
    kube.failing.clear()
    statuses.bench.ledger.remove_inventory("node-0")
    assert await statuses.step() == {"node-0": {**dict.fromkeys(EMPTY, 0), "models": ""}}


async def test_an_inventory_that_came_back_gets_its_status() -> None:
    statuses = Statuses()
    await statuses.offer("node-0", *gpus(2))
    await statuses.step()
    kube = statuses.bench.kube
    assert await statuses.bench.bind(await statuses.bench.pod("p", gpu=1, gpumem=30000)) == ""
    kube.failing["patch"] = lambda resource, name: NotFound("it is gone")
    await statuses.step()
    kube.failing.clear()
    statuses.observed["node-0"] = {}
    await statuses._statuses.step()
    assert (await statuses.observe())["node-0"]["freeMemoryMiB"] == 35536


async def test_room_that_is_held_for_longer_than_a_moment_is_listed_until_it_is_free() -> None:
    statuses = Statuses()
    await statuses.offer("node-0", *gpus(1))
    ledger, now = statuses.bench.ledger, statuses.bench.clock.monotonic()
    free = (await statuses.step())["node-0"]
    ledger.hold(Hold("uid", "default", "p", "node-0", {"GPU-0": Taken(1, 3000, 40)}, now + 60, Why.GRANT))
    assert "holds" not in (await statuses.step())["node-0"], "most holds become grants at once"
    (listed,) = (await statuses.step())["node-0"]["holds"]
    until = int(statuses.bench.clock.wall() + 60)
    named = {"namespace": "default", "pod": "p", "podUID": "uid", "gpu": "GPU-0"}
    assert listed == named | {"memoryMiB": 3000, "cores": 40, "until": until}
    assert (await statuses.step())["node-0"]["holds"] == [listed]
    ledger.release("uid", Why.GRANT)
    assert (await statuses.step())["node-0"] == free


@pytest.mark.parametrize("end", [60.0, float("inf")])
async def test_room_for_which_pods_are_evicted_is_listed_at_once_and_what_they_left_is_not_free(end: float) -> None:
    statuses = Statuses()
    await statuses.offer("node-0", *gpus(1))
    free = (await statuses.step())["node-0"]
    taken, left = {"GPU-0": Taken(1, 3000, 40)}, {"GPU-0": Taken(0, 1000, 10)}
    until = statuses.bench.clock.monotonic() + end
    statuses.nominated = [Hold("uid", "default", "p", "node-0", taken, until, Why.NOMINATION, left)]
    status = (await statuses.step())["node-0"]
    named = {"namespace": "default", "pod": "p", "podUID": "uid", "gpu": "GPU-0", "nominated": True}
    ends = {} if end == float("inf") else {"until": int(statuses.bench.clock.wall() + end)}
    assert status["holds"] == [named | {"memoryMiB": 3000, "cores": 40} | ends]
    assert status["freeMemoryMiB"] == free["freeMemoryMiB"] - 1000 and status["freeCores"] == free["freeCores"] - 10
    statuses.nominated = []
    assert (await statuses.step())["node-0"] == free
