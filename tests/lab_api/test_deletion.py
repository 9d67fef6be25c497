"""Finalizers, grace, owners and namespaces: how objects go."""

import itertools

import pytest

from lamina_lab.kubernetes.errors import ApiError
from tests.lab_api.apis import Bench, owned_by


async def test_an_object_without_ties_goes_at_once(bench: Bench) -> None:
    await bench.create("configmaps", {"metadata": {"name": "cm"}})
    _, gone = await bench.delete("configmaps", "cm")
    assert gone and bench.get("configmaps", "cm") is None


async def test_finalizers_hold_an_object_until_the_last_is_taken(bench: Bench) -> None:
    await bench.create("configmaps", {"metadata": {"name": "cm", "finalizers": ["a/x", "b/x"]}})
    _, gone = await bench.delete("configmaps", "cm")
    held = bench.get("configmaps", "cm")
    assert not gone and held is not None
    assert held["metadata"]["deletionTimestamp"] == "2026-01-01T12:00:00Z"
    with pytest.raises(ApiError, match="no new finalizers can be added"):
        await bench.patch("configmaps", "cm", {"metadata": {"finalizers": ["a/x", "b/x", "c/x"]}})
    await bench.patch("configmaps", "cm", {"metadata": {"finalizers": ["b/x"]}})
    assert bench.get("configmaps", "cm") is not None
    await bench.patch("configmaps", "cm", {"metadata": {"finalizers": None}})
    assert bench.get("configmaps", "cm") is None


async def test_a_bound_pod_has_its_grace_and_its_kubelet_ends_it(bench: Bench) -> None:
    await bench.pod("a", node="n1")
    await bench.delete("pods", "a")
    pod = bench.get("pods", "a")
    assert pod is not None
    assert pod["metadata"]["deletionTimestamp"] == "2026-01-01T12:00:30Z"
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    await bench.delete("pods", "a", grace=60)
    assert bench.get("pods", "a") is pod, "a deletion under way is never drawn out"
    await bench.delete("pods", "a", grace=5)
    shorter = bench.get("pods", "a")
    assert shorter is not None
    assert shorter["metadata"]["deletionTimestamp"] == "2026-01-01T12:00:05Z"
    await bench.delete("pods", "a", grace=0)
    assert bench.get("pods", "a") is None


@pytest.mark.parametrize(("node", "phase"), [("", "Pending"), ("n1", "Succeeded"), ("n1", "Failed")])
async def test_a_pod_that_nothing_runs_goes_at_once(bench: Bench, node: str, phase: str) -> None:
    await bench.pod("a", node=node)
    await bench.patch("pods", "a", {"status": {"phase": phase}}, subresource="status")
    await bench.delete("pods", "a")
    assert bench.get("pods", "a") is None


async def test_preconditions(bench: Bench) -> None:
    made = await bench.create("configmaps", {"metadata": {"name": "cm"}})
    for wish in ({"uid": "another"}, {"revision": "1"}):
        with pytest.raises(ApiError, match="Precondition failed") as refused:
            await bench.delete("configmaps", "cm", **wish)
        assert refused.value.code == 409
    await bench.delete("configmaps", "cm", uid=made["metadata"]["uid"])
    assert bench.get("configmaps", "cm") is None


async def _family(bench: Bench, block: bool = True) -> None:
    """A config map `top` that owns `middle`, which owns two pods: `bound`, which has a node, and `free`."""
    top = await bench.create("configmaps", {"metadata": {"name": "top"}})
    meta = {"name": "middle", "ownerReferences": owned_by(top, block)}
    middle = await bench.create("configmaps", {"metadata": meta})
    await bench.pod("bound", node="n1", ownerReferences=owned_by(middle, block))
    await bench.pod("free", ownerReferences=owned_by(middle, block))


async def test_background_deletion_takes_the_whole_family(bench: Bench) -> None:
    await _family(bench)
    await bench.delete("configmaps", "top")
    assert bench.names("configmaps") == []
    assert bench.names("pods") == ["bound"], "its kubelet ends it"
    bound = bench.get("pods", "bound")
    assert bound is not None and "deletionTimestamp" in bound["metadata"]


async def test_foreground_deletion_waits_for_dependents(bench: Bench) -> None:
    await _family(bench)
    _, gone = await bench.delete("configmaps", "top", propagation="Foreground")
    assert not gone
    assert (bench.names("configmaps"), bench.names("pods")) == (["middle", "top"], ["bound"])
    await bench.delete("pods", "bound", grace=0)
    assert (bench.names("configmaps"), bench.names("pods")) == ([], [])


async def test_foreground_deletion_does_not_wait_for_those_that_do_not_block(bench: Bench) -> None:
    await _family(bench, block=False)
    _, gone = await bench.delete("configmaps", "top", propagation="Foreground")
    assert gone
    assert (bench.names("configmaps"), bench.names("pods")) == ([], ["bound"])


async def test_orphans_stay(bench: Bench) -> None:
    await _family(bench)
    await bench.delete("configmaps", "top", propagation="Orphan")
    middle = bench.get("configmaps", "middle")
    assert middle is not None and "ownerReferences" not in middle["metadata"]
    assert bench.names("pods") == ["bound", "free"]


async def test_an_object_with_two_owners_goes_with_the_last(bench: Bench) -> None:
    first = await bench.create("configmaps", {"metadata": {"name": "first"}})
    second = await bench.create("configmaps", {"metadata": {"name": "second"}})
    owners = [*owned_by(first), {**owned_by(second)[0], "controller": False}]
    await bench.pod("a", ownerReferences=owners)
    await bench.delete("configmaps", "first")
    pod = bench.get("pods", "a")
    assert pod is not None
    assert [each["name"] for each in pod["metadata"]["ownerReferences"]] == ["second"]
    await bench.delete("configmaps", "second")
    assert bench.get("pods", "a") is None


async def test_an_object_whose_owner_is_gone_already_goes_too(bench: Bench) -> None:
    owner = await bench.create("configmaps", {"metadata": {"name": "owner"}})
    await bench.delete("configmaps", "owner")
    resource = bench.resource("pods")
    await bench.pod("late", ownerReferences=owned_by(owner))
    assert bench.get("pods", "late") is None
    changes = bench.store.collection(resource).history.read(0)
    assert [change.type for change in changes] == ["ADDED", "DELETED"]


async def test_owners_that_own_each_other_still_go(bench: Bench) -> None:
    first = await bench.create("configmaps", {"metadata": {"name": "first"}})
    second = await bench.create("configmaps", {"metadata": {"name": "second", "ownerReferences": owned_by(first)}})
    await bench.patch("configmaps", "first", {"metadata": {"ownerReferences": owned_by(second)}})
    await bench.delete("configmaps", "first")
    assert bench.names("configmaps") == []


async def test_a_namespace_goes_when_its_content_is_gone(bench: Bench) -> None:
    await bench.create("namespaces", {"metadata": {"name": "team"}})
    await bench.create("configmaps", {"metadata": {"name": "cm"}}, "team")
    await bench.create("configmaps", {"metadata": {"name": "held", "finalizers": ["a/x"]}}, "team")
    _, gone = await bench.delete("namespaces", "team")
    team = bench.get("namespaces", "team")
    assert not gone and team is not None
    assert team["status"]["phase"] == "Terminating"
    assert bench.names("configmaps", "team") == ["held"]
    with pytest.raises(ApiError, match="because it is being terminated") as refused:
        await bench.create("configmaps", {"metadata": {"name": "new"}}, "team")
    assert refused.value.code == 403
    await bench.patch("configmaps", "held", {"metadata": {"finalizers": None}}, "team")
    assert bench.get("namespaces", "team") is None
    with pytest.raises(ApiError, match='namespaces "team" not found'):
        await bench.create("configmaps", {"metadata": {"name": "new"}}, "team")


async def test_the_first_namespaces_stay(bench: Bench) -> None:
    expected = ["default", "kube-node-lease", "kube-public", "kube-system", "lamina-system"]
    assert bench.names("namespaces") == expected
    for name in expected:
        with pytest.raises(ApiError, match="may not be deleted"):
            await bench.delete("namespaces", name)


async def test_every_order_of_deletions_leaves_nothing(bench: Bench) -> None:
    """Whatever a controller, a kubelet and a user delete first, the whole family is gone in the end."""
    steps = [("configmaps", "top"), ("configmaps", "middle"), ("pods", "bound"), ("pods", "free")]
    for policy, order in itertools.product(("Background", "Foreground"), itertools.permutations(steps)):
        await _family(bench)
        for name, which in order:
            if bench.get(name, which) is not None:
                await bench.delete(name, which, grace=0, propagation=policy)
        if bench.get("pods", "bound") is not None:
            await bench.delete("pods", "bound", grace=0)
        assert (bench.names("configmaps"), bench.names("pods")) == ([], []), (policy, order)
