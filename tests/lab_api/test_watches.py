"""Watches: what each client sees, and how slow clients are handled."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from lamina_lab.api.schema import field_selectors
from lamina_lab.api.storage.history import Version
from lamina_lab.api.storage.watches import Watch, follow
from lamina_lab.kubernetes.errors import ApiError
from tests.lab_api.apis import Bench
from tests.waiting import canceled

Seen = list[tuple[str, str]]


class Watcher:
    """Collects (type, name) until it is stopped."""

    def __init__(self, bench: Bench, watch: Watch) -> None:
        self.seen: Seen = []
        self.error: ApiError | None = None
        self._task = asyncio.create_task(self._collect(bench, watch))

    async def _collect(self, bench: Bench, watch: Watch) -> None:
        try:
            async for batch in follow(bench.store, watch):
                self.seen += [(type_, version.meta.get("name", "")) for type_, version in batch]
        except ApiError as error:
            self.error = error

    async def stop(self) -> Seen:
        await settle()
        await canceled(self._task)
        return self.seen


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def watching(bench: Bench) -> AsyncIterator[Callable[..., Watcher]]:
    watchers: list[Watcher] = []

    def start(name: str, labels: str = "", fields: str = "", **more: object) -> Watcher:
        resource = bench.resource(name)
        watch = Watch(resource, selects=field_selectors.selection(resource, labels, fields), **more)  # type: ignore[arg-type]
        watchers.append(Watcher(bench, watch))
        return watchers[-1]

    yield start
    for each in watchers:
        await each.stop()


Start = Callable[..., Watcher]


async def test_a_watch_begins_with_what_is_there(bench: Bench, watching: Start) -> None:
    await bench.pod("a")
    watcher = watching("pods")
    await settle()
    await bench.pod("b")
    await bench.patch("pods", "a", {"metadata": {"labels": {"x": "y"}}})
    await bench.delete("pods", "a")
    assert await watcher.stop() == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_watch_from_a_revision_misses_nothing_and_repeats_nothing(bench: Bench, watching: Start) -> None:
    await bench.pod("a")
    revision = str(bench.store.revision)
    await bench.pod("b")
    await bench.delete("pods", "a")
    watcher = watching("pods", revision=revision)
    await settle()
    await bench.pod("c")
    assert await watcher.stop() == [("ADDED", "b"), ("DELETED", "a"), ("ADDED", "c")]


async def test_selection_turns_changes_into_arrivals_and_departures(bench: Bench, watching: Start) -> None:
    by_label, by_node = watching("pods", labels="tier=front"), watching("pods", fields="spec.nodeName=n1")
    await settle()
    await bench.pod("a")
    await bench.patch("pods", "a", {"metadata": {"labels": {"tier": "front"}}})
    await bench.patch("pods", "a", {"metadata": {"labels": {"more": "x"}}})
    await bench.pod("b", node="n1")
    await bench.patch("pods", "a", {"metadata": {"labels": {"tier": "back"}}})
    await bench.delete("pods", "a")
    assert await by_label.stop() == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert await by_node.stop() == [("ADDED", "b")]


async def test_namespaces_are_kept_apart(bench: Bench, watching: Start) -> None:
    watcher = watching("configmaps", namespace="kube-system")
    await settle()
    await bench.create("configmaps", {"metadata": {"name": "here"}}, "kube-system")
    await bench.create("configmaps", {"metadata": {"name": "there"}}, "default")
    assert await watcher.stop() == [("ADDED", "here")]


async def test_a_revision_too_old_is_gone(watching: Start) -> None:
    bench = Bench(history=10)
    resource = bench.resource("configmaps")
    await bench.create("configmaps", {"metadata": {"name": "cm"}})
    first = bench.store.revision
    for n in range(30):
        await bench.patch("configmaps", "cm", {"data": {"n": str(n)}})
    with pytest.raises(ApiError, match="too old resource version") as gone:
        await anext(follow(bench.store, Watch(resource, revision=str(first))))
    assert (gone.value.code, gone.value.reason) == (410, "Expired")
    recent = str(bench.store.revision - 5)
    batch = await anext(follow(bench.store, Watch(resource, revision=recent)))
    assert [version.obj["data"]["n"] for _, version in batch] == ["25", "26", "27", "28", "29"]


async def test_a_watcher_that_falls_behind_gets_an_error() -> None:
    bench = Bench(history=10)
    await bench.create("configmaps", {"metadata": {"name": "cm"}})
    changes = follow(bench.store, Watch(bench.resource("configmaps")))
    assert len(await anext(changes)) == 1
    for n in range(50):
        await bench.patch("configmaps", "cm", {"data": {"n": str(n)}})
    with pytest.raises(ApiError, match="too old resource version"):
        await anext(changes)


async def test_the_initial_list_ends_with_a_bookmark(bench: Bench) -> None:
    await bench.pod("a")
    watch = Watch(bench.resource("pods"), initial=True, bookmarks=True, revision="")
    [added, mark] = await anext(follow(bench.store, watch))
    assert (added[0], mark[0]) == ("ADDED", "BOOKMARK")
    meta = mark[1].obj["metadata"]
    assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert meta["resourceVersion"] == str(bench.store.revision)


async def test_a_watch_ends_with_its_time(bench: Bench) -> None:
    assert [batch async for batch in follow(bench.store, Watch(bench.resource("pods"), seconds=0.01))] == []


async def test_many_watchers_share_the_same_objects(bench: Bench) -> None:
    """A hundred clients see a thousand changes each, in order, and nothing is copied for any of them."""
    resource = bench.resource("configmaps")
    await bench.create("configmaps", {"metadata": {"name": "cm"}, "data": {"n": "0"}})

    async def collect() -> list[Version]:
        found: list[Version] = []
        async for batch in follow(bench.store, Watch(resource)):
            found += [version for _, version in batch]
            if found[-1].obj["data"]["n"] == "1000":
                return found
        raise AssertionError("the watch ended")

    watchers = [asyncio.create_task(collect()) for _ in range(100)]
    await settle()
    for n in range(1, 1001):
        await bench.patch("configmaps", "cm", {"data": {"n": str(n)}})
        if n % 50 == 0:
            await settle()
    results = await asyncio.gather(*watchers)
    first = results[0]
    assert [version.obj["data"]["n"] for version in first] == [str(n) for n in range(1001)]
    assert all(len(each) == len(first) for each in results)
    assert all(mine is theirs for each in results for mine, theirs in zip(each, first, strict=True))
