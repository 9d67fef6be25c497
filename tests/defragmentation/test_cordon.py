"""Cordoning a GPU: one annotation of the node, which other writers change too."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.gpus import CORDON
from lamina.defragmentation.cordon import set_cordoned
from lamina.errors import BadInput
from lamina.ports.kube import INVENTORIES, NODES, Conflict, Object, Patch, Resource
from lamina.ports.kube.fake import FakeKube
from tests.worlds.clusters import cluster, inventory


async def annotation(kube: FakeKube) -> str | None:
    value: str | None = ((await kube.get(NODES, "n"))["metadata"].get("annotations") or {}).get(CORDON)
    return value


@pytest.mark.parametrize("named", ["1", "GPU-n-1"])
async def test_a_gpu_is_named_by_index_or_uuid(named: str) -> None:
    kube = await cluster(inventory(gpus=3))
    assert await set_cordoned(kube, "n", named, cordoned=True) == "GPU-n-1"
    assert await annotation(kube) == "GPU-n-1"
    assert await set_cordoned(kube, "n", named, cordoned=False) == "GPU-n-1"
    assert await annotation(kube) is None


async def test_other_annotations_and_fields_of_the_node_stay() -> None:
    kube = await cluster(inventory())
    before = await kube.patch(NODES, "n", {"metadata": {"annotations": {"own": "kept"}, "labels": {"own": "kept"}}})
    await set_cordoned(kube, "n", "0", cordoned=True)
    await set_cordoned(kube, "n", "0", cordoned=False)
    after = await kube.get(NODES, "n")
    assert after | {"metadata": before["metadata"]} == before
    assert (after["metadata"]["annotations"], after["metadata"]["labels"]) == ({"own": "kept"}, {"own": "kept"})


@pytest.mark.parametrize(
    ("node", "gpu", "sentence"),
    [
        ("n", "2", r"^node n has no GPU 2; its GPUs are: 0 \(GPU-n-0\), 1 \(GPU-n-1\)$"),
        ("n", "-1", "has no GPU -1"),
        ("n", "00", "has no GPU 00"),
        ("n", "", "has no GPU ; its"),
        ("n", "GPU-n", "has no GPU GPU-n;"),
        ("empty", "0", "^node empty has no GPU 0; its GPUs are: none$"),
        ("m", "0", "^no node m offers GPUs; `lamina doctor` lists the nodes that do$"),
        ("gone", "0", "^no node gone offers GPUs"),
    ],
)
async def test_what_does_not_exist_is_refused(node: str, gpu: str, sentence: str) -> None:
    kube = await cluster(inventory(gpus=2), inventory("empty", gpus=0), inventory("gone"))
    await kube.delete(NODES, "gone")
    with pytest.raises(BadInput, match=sentence):
        await set_cordoned(kube, node, gpu, cordoned=True)
    assert await annotation(kube) is None


class BusyKube(FakeKube):
    """Another writer changes a node before each of the first `changes` patches."""

    changes = 0

    async def patch(
        self, resource: Resource, name: str, body: Patch, *, namespace: str = "", subresource: str = ""
    ) -> Object:
        if resource == NODES and self.changes:
            self.changes -= 1
            annotations = {CORDON: f"GPU-other-{self.changes}"}
            await super().patch(NODES, name, {"metadata": {"annotations": annotations}})
        return await super().patch(resource, name, body, namespace=namespace, subresource=subresource)


async def busy(changes: int) -> BusyKube:
    kube, ready = BusyKube(), await cluster(inventory())
    for resource, obj in ready.stored():
        await kube.create(resource, obj)
    kube.changes = changes
    return kube


@pytest.mark.parametrize("changes", [1, 4])
async def test_a_change_in_between_is_not_lost(changes: int) -> None:
    kube = await busy(changes)
    await set_cordoned(kube, "n", "0", cordoned=True)
    assert await annotation(kube) == "GPU-n-0,GPU-other-0"


async def test_a_node_that_never_rests_is_given_up() -> None:
    kube = await busy(5)
    with pytest.raises(Conflict):
        await set_cordoned(kube, "n", "0", cordoned=True)
    assert await annotation(kube) == "GPU-other-0"


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=8))
def test_the_annotation_lists_what_is_cordoned(steps: list[tuple[int, bool]]) -> None:
    async def run() -> None:
        kube = await cluster(inventory(gpus=3))
        expected: set[str] = set()
        for index, cordoned in steps:
            uuid = await set_cordoned(kube, "n", str(index), cordoned=cordoned)
            expected = expected | {uuid} if cordoned else expected - {uuid}
            assert await annotation(kube) == (",".join(sorted(expected)) or None)

    asyncio.run(run())


async def test_an_inventory_that_cannot_be_read_is_one_sentence() -> None:
    kube = await cluster(inventory())
    await kube.patch(INVENTORIES, "n", {"spec": {"gpus": "many"}})
    with pytest.raises(BadInput, match="inventory n cannot be read"):
        await set_cordoned(kube, "n", "0", cordoned=True)
