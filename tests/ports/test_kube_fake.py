"""The API server in memory keeps the promises that callers build upon."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.ports.kube import (
    GRANTS,
    NODES,
    PODS,
    AlreadyExists,
    Conflict,
    Gone,
    Listing,
    NotFound,
    Object,
    Refused,
    StrategicPatch,
    Unreachable,
)
from lamina.ports.kube.fake import FakeKube


def pod(name: str, **spec: object) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def test_objects_have_uid_version_kind_and_are_copies() -> None:
    kube = FakeKube()
    made = await kube.create(PODS, pod("a"))
    assert made["kind"] == "Pod" and made["apiVersion"] == "v1" and made["metadata"]["uid"]
    made["spec"]["nodeName"] = "mine"
    assert (await kube.get(PODS, "a", namespace="default"))["spec"] == {}
    with pytest.raises(AlreadyExists):
        await kube.create(PODS, pod("a"))
    with pytest.raises(NotFound):
        await kube.get(PODS, "a", namespace="other")


async def test_replacing_an_older_version_is_a_conflict() -> None:
    kube = FakeKube()
    first = await kube.create(PODS, pod("a"))
    second = await kube.replace(PODS, first | {"spec": {"x": 1}})
    assert second["metadata"]["generation"] == 2
    with pytest.raises(Conflict):
        await kube.replace(PODS, first | {"spec": {"x": 2}})


async def test_the_three_kinds_of_patch() -> None:
    kube = FakeKube()
    containers = [{"name": "a", "image": "one"}, {"name": "b", "image": "two"}]
    await kube.create(PODS, pod("p", containers=containers))
    merge = await kube.patch(PODS, "p", {"metadata": {"labels": {"x": "1"}}}, namespace="default")
    assert merge["metadata"]["labels"] == {"x": "1"}
    body = {"spec": {"containers": [{"name": "b", "image": "three"}]}}
    strategic = await kube.patch(PODS, "p", StrategicPatch(body), namespace="default")
    assert [c["image"] for c in strategic["spec"]["containers"]] == ["one", "three"]
    json = [{"op": "remove", "path": "/metadata/labels/x"}]
    assert (await kube.patch(PODS, "p", json, namespace="default"))["metadata"]["labels"] == {}
    with pytest.raises(Refused):
        await kube.patch(PODS, "p", json, namespace="default")


async def test_a_status_patch_touches_only_the_status() -> None:
    kube = FakeKube()
    await kube.create(NODES, {"metadata": {"name": "n"}, "spec": {"x": 1}})
    body = {"status": {"ready": True}, "spec": {"x": 2}}
    node = await kube.patch(NODES, "n", body, subresource="status")
    assert node["status"] == {"ready": True} and node["spec"] == {"x": 1}


async def test_deleting_checks_the_uid_and_collects_what_it_owned() -> None:
    kube = FakeKube()
    owner = await kube.create(PODS, pod("p"))
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner["metadata"]["uid"]}
    await kube.create(GRANTS, {"metadata": {"name": "g", "namespace": "default", "ownerReferences": [reference]}})
    with pytest.raises(Conflict):
        await kube.delete(PODS, "p", namespace="default", uid="another")
    await kube.delete(PODS, "p", namespace="default", uid=owner["metadata"]["uid"])
    assert (await kube.list(GRANTS)).items == []


async def test_a_finalizer_keeps_an_object_until_it_is_removed() -> None:
    kube = FakeKube()
    await kube.create(PODS, {"metadata": {"name": "p", "namespace": "default", "finalizers": ["x/y"]}, "spec": {}})
    await kube.delete(PODS, "p", namespace="default")
    assert (await kube.get(PODS, "p", namespace="default"))["metadata"]["deletionTimestamp"]
    await kube.patch(PODS, "p", {"metadata": {"finalizers": None}}, namespace="default")
    with pytest.raises(NotFound):
        await kube.get(PODS, "p", namespace="default")


async def test_binding_gives_a_node_once_and_only_to_that_uid_and_version() -> None:
    kube = FakeKube()
    meta = (await kube.create(PODS, pod("p")))["metadata"]
    uid = meta["uid"]
    with pytest.raises(Conflict):
        await kube.bind("p", namespace="default", uid="another", node="n")
    with pytest.raises(Conflict, match="version"):
        await kube.bind("p", namespace="default", uid=uid, node="n", version="another")
    await kube.bind("p", namespace="default", uid=uid, node="n", version=meta["resourceVersion"])
    assert (await kube.get(PODS, "p", namespace="default"))["spec"]["nodeName"] == "n"
    with pytest.raises(Conflict):
        await kube.bind("p", namespace="default", uid=uid, node="m")


async def test_a_watch_with_a_selector_sees_objects_enter_and_leave() -> None:
    kube = FakeKube()
    version = (await kube.list(PODS)).version
    uid = (await kube.create(PODS, pod("p")))["metadata"]["uid"]
    await kube.bind("p", namespace="default", uid=uid, node="n")
    await kube.patch(PODS, "p", {"spec": {"nodeName": "m"}}, namespace="default")
    stream = kube.watch(PODS, version, fields="spec.nodeName=n")
    assert [(await anext(stream)).kind for _ in range(2)] == ["ADDED", "DELETED"]
    await stream.aclose()


async def test_a_watch_from_too_long_ago_is_gone_and_a_disconnect_ends_it() -> None:
    kube = FakeKube()
    await kube.create(PODS, pod("p"))
    kube.forget_history()
    with pytest.raises(Gone):
        await anext(kube.watch(PODS, "0"))
    stream = kube.watch(PODS, (await kube.list(PODS)).version)
    waiting = asyncio.ensure_future(anext(stream, None))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    kube.disconnect()
    assert await waiting is None


async def test_a_disconnect_ends_a_watch_whose_reader_is_busy() -> None:
    kube = FakeKube()
    await kube.create(PODS, pod("p"))
    stream = kube.watch(PODS, "0")
    assert (await anext(stream)).kind == "ADDED"
    kube.disconnect()
    async with asyncio.timeout(1):
        assert await anext(stream, None) is None


async def test_what_a_watch_reports_is_its_own_copy() -> None:
    kube = FakeKube()
    await kube.create(PODS, pod("p"))
    streams = [kube.watch(PODS, "0") for _ in range(2)]
    first, second = [(await anext(stream)).object for stream in streams]
    first["spec"]["nodeName"] = "mine"
    assert second["spec"] == {} and (await kube.get(PODS, "p", namespace="default"))["spec"] == {}
    for stream in streams:
        await stream.aclose()


async def test_a_change_of_one_kind_does_not_end_the_wait_for_another() -> None:
    kube = FakeKube()
    stream = kube.watch(PODS, "0")
    waiting = asyncio.ensure_future(anext(stream))
    await kube.create(NODES, {"metadata": {"name": "n"}})
    assert not waiting.done()
    await kube.create(PODS, pod("p"))
    assert (await waiting).object["metadata"]["name"] == "p"
    await stream.aclose()


async def test_garbage_has_lost_all_of_its_owners() -> None:
    kube = FakeKube()
    owners = [(await kube.create(PODS, pod(name)))["metadata"]["uid"] for name in ("a", "b")]
    references = [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": uid} for uid in owners]
    meta = {"name": "both", "namespace": "default", "ownerReferences": references}
    both = await kube.create(GRANTS, {"metadata": meta})
    nested = {"name": "nested", "namespace": "default", "ownerReferences": [{"uid": both["metadata"]["uid"]}]}
    await kube.create(GRANTS, {"metadata": nested})
    await kube.delete(PODS, "a", namespace="default")
    assert [obj["metadata"]["name"] for obj in (await kube.list(GRANTS)).items] == ["both", "nested"]
    await kube.delete(PODS, "b", namespace="default")
    assert (await kube.list(GRANTS)).items == []


_CHANGES = st.lists(
    st.tuples(st.sampled_from(["create", "label", "node", "delete"]), st.sampled_from("ab"), st.sampled_from("xy")),
    max_size=12,
)
_SELECTORS: list[dict[str, str]] = [{}, {"labels": "l=x"}, {"fields": "spec.nodeName=y"}, {"labels": "!l"}]


@given(_CHANGES, _CHANGES, st.sampled_from(_SELECTORS))
def test_a_list_and_the_watch_after_it_lead_to_the_next_list(
    before: list[tuple[str, str, str]], after: list[tuple[str, str, str]], selector: dict[str, str]
) -> None:
    asyncio.run(_list_watch_list(before, after, selector))


async def _list_watch_list(
    before: list[tuple[str, str, str]], after: list[tuple[str, str, str]], selector: dict[str, str]
) -> None:
    kube = FakeKube()
    await _make(kube, before)
    listing = await kube.list(PODS, **selector)
    await _make(kube, after)
    watching = asyncio.create_task(_follow(kube, listing, selector))
    for _ in range(5):
        await asyncio.sleep(0)
    kube.disconnect()
    known = await watching
    assert known == {obj["metadata"]["name"]: obj for obj in (await kube.list(PODS, **selector)).items}


async def _follow(kube: FakeKube, listing: Listing, selector: dict[str, str]) -> dict[str, Object]:
    """The objects of a list, kept up to date until the watch ends."""
    known = {obj["metadata"]["name"]: obj for obj in listing.items}
    async for kind, obj in kube.watch(PODS, listing.version, **selector):
        name = obj["metadata"]["name"]
        assert (name in known) == (kind != "ADDED")
        if kind == "DELETED":
            del known[name]
        else:
            known[name] = obj
    return known


async def _make(kube: FakeKube, changes: list[tuple[str, str, str]]) -> None:
    for verb, name, value in changes:
        try:
            if verb == "create":
                await kube.create(PODS, pod(name))
            elif verb == "label":
                await kube.patch(PODS, name, {"metadata": {"labels": {"l": value}}}, namespace="default")
            elif verb == "node":
                await kube.patch(PODS, name, {"spec": {"nodeName": value}}, namespace="default")
            else:
                await kube.delete(PODS, name, namespace="default")
        except (AlreadyExists, NotFound):
            pass


async def test_label_selectors_choose() -> None:
    kube = FakeKube()
    for name, labels in {"a": {"gpu": "on"}, "b": {"gpu": "off"}, "c": {}}.items():
        await kube.create(NODES, {"metadata": {"name": name, "labels": labels}})
    chosen = {
        selector: "".join(o["metadata"]["name"] for o in (await kube.list(NODES, labels=selector)).items)
        for selector in ("gpu=on", "gpu!=on", "gpu", "!gpu", "gpu==off,gpu")
    }
    assert chosen == {"gpu=on": "a", "gpu!=on": "bc", "gpu": "ab", "!gpu": "c", "gpu==off,gpu": "b"}


async def test_failing_names_the_error_of_a_verb() -> None:
    kube = FakeKube()
    kube.failing["create"] = lambda resource, name: Unreachable("down") if resource == PODS else None
    await kube.create(NODES, {"metadata": {"name": "n"}})
    with pytest.raises(Unreachable):
        await kube.create(PODS, pod("p"))
    assert [(verb, name) for verb, _, name in kube.calls] == [("create", "n"), ("create", "p")]
