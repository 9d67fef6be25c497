"""A follower misses nothing: it gets everything that exists, happens, or happened while no one listened."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.errors import Outside
from lamina.ports.clock import FakeClock
from lamina.ports.kube import NODES, Followed, Listing, Object, Unreachable
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kube.follow import PAUSES_S, FollowedCollection, trimmed_to


def node(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


class Follower:
    """Collects what is reported, and keeps the picture that a listener would have."""

    def __init__(self, collection: FollowedCollection) -> None:
        self.collection = collection
        self.clock = FakeClock()
        self.held: set[str] = set()
        """The UIDs of what was reported or noted, and has not been reported as deleted."""
        self.reported: list[str] = []
        self.picture: dict[str, Object] = {}
        self.wrong: list[str] = []

    async def rest(self) -> None:
        """Let so much time pass that everything was tried again."""
        await self.clock.advance(2 * PAUSES_S[-1])

    def receive(self, event: Followed) -> None:
        if event.kind == "SYNCED":
            self.reported.append("SYNCED")
            return
        name, uid = event.object["metadata"]["name"], event.object["metadata"]["uid"]
        self.reported.append(f"{event.kind} {name}")
        expected = uid in self.held if event.kind == "DELETED" else (event.kind == "MODIFIED") == (name in self.picture)
        if not expected:
            self.wrong.append(self.reported[-1])
        if event.kind == "DELETED":
            self.held.discard(uid)
            if name in self.picture and self.picture[name]["metadata"]["uid"] == uid:
                del self.picture[name]
        else:
            self.held.add(uid)
            self.picture[name] = event.object

    def note(self, obj: Object) -> None:
        if self.collection.note(obj):
            self.held.add(obj["metadata"]["uid"])


@asynccontextmanager
async def following(kube: FakeKube, **chosen: str) -> AsyncIterator[Follower]:
    follower = Follower(FollowedCollection(kube, NODES, **chosen))  # type: ignore[arg-type]

    async def run() -> None:
        async for event in follower.collection.follow(follower.clock):
            follower.receive(event)

    task = asyncio.create_task(run())
    await follower.rest()
    yield follower
    task.cancel()


async def test_what_exists_comes_first_then_synced_then_what_happens() -> None:
    kube = FakeKube()
    await kube.create(NODES, node("a"))
    async with following(kube) as follower:
        assert follower.reported == ["ADDED a", "SYNCED"]
        await kube.create(NODES, node("b"))
        await kube.patch(NODES, "a", {"metadata": {"labels": {"x": "y"}}})
        await kube.delete(NODES, "b")
        await follower.rest()
        assert follower.reported[2:] == ["ADDED b", "MODIFIED a", "DELETED b"]


async def test_a_watch_that_ends_is_taken_up_where_it_stopped() -> None:
    kube = FakeKube()
    async with following(kube) as follower:
        kube.disconnect()
        await kube.create(NODES, node("a"))
        await follower.rest()
        assert follower.reported == ["SYNCED", "ADDED a"]
        assert [verb for verb, _, _ in kube.calls].count("list") == 1


async def test_changes_in_a_gap_are_reported_as_events() -> None:
    kube = FakeKube()
    for name in ("kept", "changed", "deleted", "replaced"):
        await kube.create(NODES, node(name))
    async with following(kube) as follower:
        kube.failing["watch"] = lambda resource, name: Unreachable("down")
        kube.disconnect()
        await follower.rest()
        follower.reported.clear()
        await kube.patch(NODES, "changed", {"metadata": {"labels": {"x": "y"}}})
        for name in ("deleted", "replaced"):
            await kube.delete(NODES, name)
        for name in ("replaced", "new"):
            await kube.create(NODES, node(name))
        kube.forget_history()
        kube.failing.clear()
        await follower.rest()
        events = ["DELETED deleted", "MODIFIED changed", "DELETED replaced", "ADDED replaced", "ADDED new", "SYNCED"]
        assert follower.reported == events and follower.wrong == []


async def test_a_server_that_is_down_at_first_is_asked_again() -> None:
    kube = FakeKube()
    kube.failing["list"] = lambda resource, name: Unreachable("down")
    async with following(kube) as follower:
        assert follower.reported == []
        kube.failing.clear()
        await follower.rest()
        assert follower.reported == ["SYNCED"]


async def test_a_selector_and_a_trim_hold_after_a_relist_too() -> None:
    kube = FakeKube()
    await kube.create(NODES, node("a", gpu="on"))
    await kube.create(NODES, node("b"))
    async with following(kube, labels="gpu=on") as follower:
        await kube.patch(NODES, "b", {"metadata": {"labels": {"gpu": "on"}}})
        await kube.patch(NODES, "a", {"metadata": {"labels": {"gpu": "off"}}})
        await follower.rest()
        assert follower.reported == ["ADDED a", "SYNCED", "ADDED b", "DELETED a"]


async def test_what_comes_and_goes_in_a_gap_is_reported_as_deleted_if_it_was_noted() -> None:
    kube = FakeKube()
    async with following(kube) as follower:
        kube.failing["watch"] = lambda resource, name: Unreachable("down")
        kube.disconnect()
        await follower.rest()
        for name in ("noted", "unnoted", "replaced"):
            await kube.create(NODES, node(name))
        for name in ("noted", "replaced"):
            follower.note(await kube.get(NODES, name))
        for name in ("noted", "unnoted", "replaced"):
            await kube.delete(NODES, name)
        follower.note(await kube.create(NODES, node("kept")))
        await kube.create(NODES, node("replaced"))
        kube.forget_history()
        kube.failing.clear()
        await follower.rest()
        assert follower.reported[1:] == ["DELETED noted", "DELETED replaced", "ADDED kept", "ADDED replaced", "SYNCED"]
        assert follower.wrong == []


async def test_what_is_noted_while_the_list_is_on_its_way_is_not_taken_for_deleted() -> None:
    """The list is older than the object. Its watch reports the object."""
    kube = FakeKube()
    listed, answered = asyncio.Event(), asyncio.Event()

    class Slow(FakeKube):
        async def list(self, *args: Any, **chosen: Any) -> Listing:
            found = await kube.list(*args, **chosen)
            listed.set()
            await answered.wait()
            return found

        watch = kube.watch  # type: ignore[assignment]

    async with following(Slow()) as follower:
        await listed.wait()
        follower.note(await kube.create(NODES, node("new")))
        answered.set()
        await follower.rest()
        assert follower.reported == ["SYNCED", "ADDED new"]


async def test_a_late_answer_about_an_object_whose_deletion_was_reported_is_not_noted() -> None:
    kube = FakeKube()
    async with following(kube) as follower:
        late = await kube.create(NODES, node("gone"))
        await kube.delete(NODES, "gone")
        await follower.rest()
        assert follower.reported[1:] == ["ADDED gone", "DELETED gone"] and not follower.collection.note(late)


STEPS = st.sampled_from(["create", "delete", "patch", "disconnect", "forget", "down", "up", "read", "note"])


@given(steps=st.lists(st.tuples(STEPS, st.sampled_from("abc"), st.booleans()), max_size=30))
def test_the_picture_is_right_in_the_end(steps: list[tuple[str, str, bool]]) -> None:
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, str, bool]]) -> None:
    kube = FakeKube()
    read: list[Object] = []
    async with following(kube) as follower:
        for number, (step, name, wait) in enumerate(steps):
            present = {obj["metadata"]["name"] for obj in (await kube.list(NODES)).items}
            if step == "create" and name not in present:
                await kube.create(NODES, node(name))
            elif step == "delete" and name in present:
                await kube.delete(NODES, name)
            elif step == "patch" and name in present:
                await kube.patch(NODES, name, {"metadata": {"labels": {"step": str(number)}}})
            elif step == "disconnect":
                kube.disconnect()
            elif step == "forget":
                kube.forget_history()
            elif step == "down":
                kube.failing["watch"] = lambda resource, name: Unreachable("down")
                kube.disconnect()
            elif step == "up":
                kube.failing.clear()
            elif step == "read" and name in present:
                read.append(await kube.get(NODES, name))
            elif step == "note" and read:
                follower.note(read.pop(0))
            if wait:
                await follower.rest()
        kube.failing.clear()
        await follower.rest()
        truth = {obj["metadata"]["name"]: obj for obj in (await kube.list(NODES)).items}
        assert follower.picture == truth and follower.wrong == []
        assert follower.held == {obj["metadata"]["uid"] for obj in truth.values()}


async def test_a_version_that_the_server_does_not_accept_any_more_is_given_up() -> None:
    """A server restored from a backup has never heard of the versions that it gave before."""
    kube = FakeKube()
    await kube.create(NODES, node("a"))
    async with following(kube) as follower:
        kube.failing["watch"] = lambda resource, name: Outside("Kubernetes answered 504: Too large resource version")
        kube.disconnect()
        await follower.rest()
        await kube.create(NODES, node("b"))
        await follower.rest()
        assert set(follower.picture) == {"a", "b"}
        kube.failing.clear()
        await follower.rest()
        await kube.create(NODES, node("c"))
        await follower.rest()
    assert set(follower.picture) == {"a", "b", "c"} and not follower.wrong


async def test_an_unreachable_server_causes_no_new_list() -> None:
    kube = FakeKube()
    async with following(kube) as follower:
        kube.failing["watch"] = lambda resource, name: Unreachable("away")
        kube.disconnect()
        await follower.rest()
    assert [verb for verb, _, _ in kube.calls].count("list") == 1


async def test_a_watch_with_a_defect_neither_floods_the_log_nor_the_server(caplog: pytest.LogCaptureFixture) -> None:
    kube = FakeKube()
    async with following(kube) as follower:
        kube.failing["watch"] = lambda resource, name: ValueError("defect")  # type: ignore[return-value]
        kube.disconnect()
        for _ in range(5):
            await follower.rest()
    assert [verb for verb, _, _ in kube.calls].count("list") <= 20
    assert len(caplog.records) <= 3


def test_what_is_trimmed_keeps_its_identity_and_the_named_fields() -> None:
    meta = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}}
    pod = {"metadata": meta, "spec": {"nodeName": "x", "containers": []}, "status": {"phase": "Running", "other": 1}}
    trimmed = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7"}
    assert trimmed_to()(pod) == {"metadata": trimmed}
    assert trimmed_to("spec", "status.phase", "status.absent")(pod) == {
        "metadata": trimmed,
        "spec": pod["spec"],
        "status": {"phase": "Running", "absent": None},
    }
    assert trimmed_to("spec", "status.phase")({"metadata": meta}) == {
        "metadata": trimmed,
        "spec": {},
        "status": {"phase": None},
    }
