"""The API server in memory keeps the promises that callers build upon."""

import asyncio

import pytest

from lamina.ports.kube import (
    GRANTS,
    NODES,
    PODS,
    AlreadyExists,
    Conflict,
    Gone,
    NotFound,
    PatchKind,
    Refused,
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
    strategic = await kube.patch(PODS, "p", body, namespace="default", kind=PatchKind.STRATEGIC)
    assert [c["image"] for c in strategic["spec"]["containers"]] == ["one", "three"]
    json = [{"op": "remove", "path": "/metadata/labels/x"}]
    assert (await kube.patch(PODS, "p", json, namespace="default", kind=PatchKind.JSON))["metadata"]["labels"] == {}
    with pytest.raises(Refused):
        await kube.patch(PODS, "p", json, namespace="default", kind=PatchKind.JSON)


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


async def test_binding_gives_a_node_once_and_only_to_that_uid() -> None:
    kube = FakeKube()
    uid = (await kube.create(PODS, pod("p")))["metadata"]["uid"]
    with pytest.raises(Conflict):
        await kube.bind("p", namespace="default", uid="another", node="n")
    await kube.bind("p", namespace="default", uid=uid, node="n")
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
