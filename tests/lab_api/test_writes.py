"""What a write may change, and what it must be refused for."""

import copy

import pytest

from lamina.ports.kube import Object
from lamina_lab.api.storage.verbs import Call
from lamina_lab.kubernetes.errors import ApiError
from tests.lab_api.apis import Bench

CRD = {
    "metadata": {"name": "shares.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "shares", "kind": "Share"},
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v2",
                "schema": {"openAPIV3Schema": {"type": "object"}},
                "subresources": {"status": {}},
            }
            for name in ("v1", "v2")
        ],
    },
}


async def test_a_new_object_gets_its_identity(bench: Bench) -> None:
    pod = await bench.pod("a", uid="mine", creationTimestamp="1970-01-01T00:00:00Z")
    meta = pod["metadata"]
    assert meta["uid"] not in ("", "mine")
    assert (meta["creationTimestamp"], meta["generation"]) == ("2026-01-01T12:00:00Z", 1)
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    other = await bench.pod("b")
    assert int(other["metadata"]["resourceVersion"]) > int(meta["resourceVersion"])


async def test_generated_names_differ(bench: Bench) -> None:
    made = [await bench.create("configmaps", {"metadata": {"generateName": "cm-"}}) for _ in range(50)]
    names = {each["metadata"]["name"] for each in made}
    assert len(names) == 50
    assert all(name.startswith("cm-") and len(name) == 8 for name in names)


async def test_a_name_is_taken_once(bench: Bench) -> None:
    await bench.pod("a")
    with pytest.raises(ApiError, match='pods "a" already exists') as refused:
        await bench.pod("a")
    assert (refused.value.code, refused.value.reason) == (409, "AlreadyExists")


async def test_an_update_from_an_old_state_conflicts(bench: Bench) -> None:
    old = await bench.create("configmaps", {"metadata": {"name": "cm"}, "data": {"a": "1"}})
    await bench.update("configmaps", {**old, "data": {"a": "2"}})
    with pytest.raises(ApiError, match="the object has been modified") as refused:
        await bench.update("configmaps", {**old, "data": {"a": "3"}})
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")
    meta = {key: value for key, value in old["metadata"].items() if key != "resourceVersion"}
    assert (await bench.update("configmaps", {**old, "metadata": meta, "data": {"a": "4"}}))["data"] == {"a": "4"}
    with pytest.raises(ApiError, match="Precondition failed: UID"):
        await bench.update("configmaps", {**old, "metadata": {**meta, "uid": "another"}})


async def test_an_update_that_changes_nothing_is_no_event(bench: Bench) -> None:
    pod = await bench.pod("a")
    before = bench.store.revision
    assert await bench.update("pods", pod) is pod
    assert bench.store.revision == before


async def test_status_and_spec_have_separate_writers(bench: Bench) -> None:
    pod = await bench.pod("a")
    await bench.patch("pods", "a", {"status": {"phase": "Running"}, "metadata": {"labels": {"x": "y"}}})
    found = bench.get("pods", "a")
    assert found is not None
    assert (found["status"]["phase"], found["metadata"]["labels"]) == ("Pending", {"x": "y"})
    spec = {"spec": {"priority": 7}, "status": {"phase": "Running"}}
    found = await bench.patch("pods", "a", spec, subresource="status")
    assert (found["status"]["phase"], found["spec"]) == ("Running", pod["spec"])
    assert found["metadata"]["generation"] == 1


async def test_generation_counts_changes_of_what_is_wanted(bench: Bench) -> None:
    await bench.create("customresourcedefinitions.apiextensions.k8s.io", CRD)
    made = await bench.create("shares.example.com", {"metadata": {"name": "s"}, "spec": {"a": 1}, "status": {"b": 1}})
    assert ("status" in made, made["metadata"]["generation"]) == (False, 1)
    for patch, subresource, generation in (
        ({"metadata": {"labels": {"a": "b"}}}, "", 1),
        ({"status": {"b": 2}}, "status", 1),
        ({"spec": {"a": 2}}, "", 2),
    ):
        made = await bench.patch("shares.example.com", "s", patch, subresource=subresource)
        assert made["metadata"]["generation"] == generation


async def test_versions_of_a_custom_resource_show_the_same_objects(bench: Bench) -> None:
    await bench.create("customresourcedefinitions.apiextensions.k8s.io", CRD)
    older = bench.catalog.find("example.com", "v1", "shares")
    body = {"apiVersion": "example.com/v1", "kind": "Share", "metadata": {"name": "s"}, "spec": {"a": 1}}
    await bench.api.create(older, "", body, Call())
    newer = bench.catalog.find("example.com", "v2", "shares")
    change = bench.api.patch(newer, "", "s", lambda obj: {**obj, "spec": {"a": 2}}, Call())
    assert (await change).obj["spec"] == {"a": 2}
    assert bench.names("shares.example.com") == ["s"]


async def test_a_definition_that_goes_takes_its_objects_along(bench: Bench) -> None:
    name = "customresourcedefinitions.apiextensions.k8s.io"
    made = await bench.create(name, CRD)
    conditions = {each["type"]: each["status"] for each in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    await bench.create("shares.example.com", {"metadata": {"name": "s"}})
    await bench.delete(name, "shares.example.com")
    with pytest.raises(ApiError, match="could not find the requested resource"):
        bench.resource("shares.example.com")
    await bench.create(name, CRD)
    assert bench.names("shares.example.com") == []


async def test_a_custom_resource_cannot_be_replaced_blindly(bench: Bench) -> None:
    await bench.create("customresourcedefinitions.apiextensions.k8s.io", CRD)
    await bench.create("shares.example.com", {"metadata": {"name": "s"}})
    body = {"apiVersion": "example.com/v2", "kind": "Share", "metadata": {"name": "s"}}
    with pytest.raises(
        ApiError, match=r"metadata\.resourceVersion: Invalid value: .*: must be specified for an update"
    ):
        await bench.update("shares.example.com", body)


async def test_a_pod_is_bound_once(bench: Bench) -> None:
    await bench.pod("a")
    await bench.api.bind("default", "a", {"metadata": {"annotations": {"note": "x"}}, "target": {"name": "n1"}}, Call())
    pod = bench.get("pods", "a")
    assert pod is not None
    assert (pod["spec"]["nodeName"], pod["metadata"]["annotations"]) == ("n1", {"note": "x"})
    [condition] = pod["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    with pytest.raises(ApiError, match='pod a is already assigned to node "n1"') as refused:
        await bench.api.bind("default", "a", {"target": {"name": "n2"}}, Call())
    assert refused.value.code == 409


async def test_crossing_patches_both_arrive(bench: Bench) -> None:
    """A patch that another write overtakes, here from within, is retried."""
    await bench.create("configmaps", {"metadata": {"name": "cm"}, "data": {}})
    resource, tries = bench.resource("configmaps"), 0

    async def overtaken(review: object, call: object) -> Object:
        nonlocal tries
        tries += 1
        if tries == 1:
            current = bench.store.get(resource, "default", "cm")
            data = {**current.obj.get("data", {}), "theirs": "1"}
            bench.store.replace(resource, current, {**current.obj, "metadata": dict(current.meta), "data": data})
        new: Object = getattr(review, "new")  # noqa: B009
        return new

    bench.webhooks.mutate = overtaken  # type: ignore[method-assign]
    assert (await bench.patch("configmaps", "cm", {"data": {"mine": "1"}}))["data"] == {"mine": "1", "theirs": "1"}


async def test_dry_run_answers_as_if_and_stores_nothing(bench: Bench) -> None:
    made = await bench.create("configmaps", {"metadata": {"name": "cm"}}, dry_run=True)
    assert made["metadata"]["uid"]
    assert bench.names("configmaps") == []
    await bench.create("configmaps", {"metadata": {"name": "cm"}})
    with pytest.raises(ApiError, match="already exists"):
        await bench.create("configmaps", {"metadata": {"name": "cm"}}, dry_run=True)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"kind": "", "metadata": {"name": "x"}}, "Object 'Kind' is missing"),
        ({"kind": "Secret", "metadata": {"name": "x"}}, "cannot be handled as a ConfigMap"),
        ({"metadata": {"name": "x", "namespace": "other"}}, "namespace of the provided object does not match"),
        ({"metadata": {"name": "x", "resourceVersion": "5"}}, "resourceVersion should not be set"),
        ({"metadata": {"name": "x", "labels": {"a": 1}}}, "cannot unmarshal number into Go struct field"),
        ({"metadata": {"name": "x", "labels": {"a": "b c"}}}, "a valid label must be an empty string or consist of"),
        ({"metadata": {"name": "x", "labels": {"/a": "b"}}}, "prefix part a lowercase RFC 1123 subdomain"),
        ({"metadata": {"name": "X_Y"}}, "a lowercase RFC 1123 subdomain must consist of"),
        ({"metadata": {"name": "x" * 254}}, "must be no more than 253 bytes"),
        ({"metadata": {}}, "metadata.name: Required value: name or generateName is required"),
        ({"metadata": []}, "metadata.name: Required value"),
    ],
)
async def test_bodies_that_are_refused(bench: Bench, body: Object, wanted: str) -> None:
    with pytest.raises(ApiError, match=wanted.replace("(", r"\(")):
        await bench.create("configmaps", body)
    assert bench.names("configmaps") == []


async def test_no_write_changes_an_object_that_a_reader_holds(bench: Bench) -> None:
    """Readers share stored objects, so every write must leave the states before it as they were."""
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template, "replicas": 1}
    seen = [await bench.create("deployments.apps", {"metadata": {"name": "d"}, "spec": spec})]
    kept = [copy.deepcopy(seen[0])]
    image = {"spec": {"template": {"spec": {"containers": [{"name": "m", "image": "j"}]}}}}
    for patch, subresource in (
        ({"status": {"replicas": 1}}, "status"),
        ({"metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]}}, ""),
        (image, ""),
        ({"spec": {"nonsense": 1, "paused": None}}, ""),
    ):
        seen.append(await bench.patch("deployments.apps", "d", patch, subresource=subresource))
        kept.append(copy.deepcopy(seen[-1]))
    await bench.delete("deployments.apps", "d")
    assert seen == kept
