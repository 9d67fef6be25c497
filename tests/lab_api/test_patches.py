"""Merge, strategic merge and server-side apply, without HTTP."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.ports.kube import Object
from lamina_lab.api.patching import patches, server_side_apply, strategic_merge
from lamina_lab.api.schema.resources import Catalog
from lamina_lab.kubernetes.errors import ApiError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def _without_nulls(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return value


@given(original=JSON, patch=st.dictionaries(st.text(max_size=3), JSON, max_size=3))
def test_a_merge_patch_is_idempotent_and_changes_nothing_in_place(original: object, patch: Object) -> None:
    before = copy.deepcopy(original)
    once = patches.merge(original, patch)
    assert original == before
    assert patches.merge(once, patch) == once
    assert patches.merge({}, patch) == _without_nulls(patch)


POD = {
    "spec": {
        "containers": [
            {"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
            {"name": "b", "image": "b:1", "ports": [{"containerPort": 80}]},
        ],
        "tolerations": [{"key": "old"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
    "metadata": {"finalizers": ["x", "y"], "labels": {"l": "m"}},
}


def _containers(*containers: Object) -> Object:
    return {"spec": {"containers": list(containers)}}


def _volume(**fields: object) -> Object:
    return {"spec": {"volumes": [{"name": "v", **fields}]}}


@pytest.mark.parametrize(
    ("patch", "path", "wanted"),
    [
        (_containers({"name": "b", "image": "b:2"}), "spec.containers.1.image", "b:2"),
        (_containers({"name": "b", "image": "b:2"}), "spec.containers.1.ports", [{"containerPort": 80}]),
        (_containers({"name": "a", "$patch": "delete"}), "spec.containers.*.name", ["b"]),
        (_containers({"name": "c", "image": "c"}), "spec.containers.*.name", ["c", "a", "b"]),
        (_containers({"name": "c", "image": "c"}, {"$patch": "replace"}), "spec.containers.*.name", ["c"]),
        (_containers({"name": "a", "env": [{"name": "X", "value": None}]}), "spec.containers.0.env.0", {"name": "X"}),
        (_containers({"name": "b", "ports": [{"containerPort": 9}]}), "spec.containers.1.ports.0.containerPort", 9),
        ({"spec": {"tolerations": [{"key": "new"}]}}, "spec.tolerations", [{"key": "new"}]),
        (_volume(emptyDir=None, hostPath={"path": "/x"}), "spec.volumes.0", {"name": "v", "hostPath": {"path": "/x"}}),
        (_volume(**{"$retainKeys": ["name", "csi"], "csi": {}}), "spec.volumes.0", {"name": "v", "csi": {}}),
        ({"metadata": {"finalizers": ["z"]}}, "metadata.finalizers", ["z", "x", "y"]),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"]}}, "metadata.finalizers", ["y"]),
        ({"metadata": {"labels": {"$patch": "replace", "n": "o"}}}, "metadata.labels", {"n": "o"}),
        ({"metadata": {"labels": {"$patch": "delete"}}}, "metadata", {"finalizers": ["x", "y"]}),
        ({"metadata": {"labels": None}}, "metadata", {"finalizers": ["x", "y"]}),
        (
            {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": []}},
            "spec.containers.*.name",
            ["b", "a"],
        ),
        (
            {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}], "containers": [{"name": "c"}]}},
            "spec.containers.*.name",
            ["c", "a", "b"],
        ),
    ],
)  # fmt: skip
def test_strategic_merge(patch: Object, path: str, wanted: object) -> None:
    before = copy.deepcopy(POD)
    assert _at(strategic_merge.apply(POD, patch), path.split(".")) == wanted
    assert before == POD


def _at(value: object, path: list[str]) -> object:
    if not path:
        return value
    step, *rest = path
    if step == "*":
        assert isinstance(value, list)
        return [_at(each, rest) for each in value]
    return _at(value[int(step) if isinstance(value, list) else step], rest)  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("patch", "wanted"),
    [
        (_containers({"image": "x"}), "does not contain declared merge key: name"),
        ({"$patch": "nonsense"}, "Unknown patch type found: nonsense"),
    ],
)
def test_invalid_strategic_patches(patch: Object, wanted: str) -> None:
    with pytest.raises(ApiError, match=wanted):
        strategic_merge.apply(POD, patch)


def test_each_resource_names_the_patches_that_it_takes() -> None:
    pods = Catalog().named("pods")
    with pytest.raises(ApiError, match="strategic-merge-patch") as refused:
        patches.patcher(pods, "application/json", b"{}")
    assert refused.value.code == 415
    with pytest.raises(ApiError, match="the object provided is unrecognized"):
        patches.patcher(pods, patches.MERGE, b"{")
    with pytest.raises(ApiError, match="must be a list of operations"):
        patches.patcher(pods, patches.JSON, b"{}")


def test_yaml_keeps_timestamps_as_text() -> None:
    assert patches.decode(patches.APPLY, b"at: 2026-01-01T00:00:00Z") == {"at": "2026-01-01T00:00:00Z"}
    with pytest.raises(ApiError, match="error decoding YAML"):
        patches.decode(patches.APPLY, b"a: [")


def _config(containers: Object, **labels: str) -> Object:
    listed = [{"name": name, "image": image} for name, image in containers.items()]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": labels},
        "spec": {"containers": listed},
    }


def test_apply_remembers_per_manager() -> None:
    obj = server_side_apply.applied_new(_config({"a": "a:1", "b": "b:1"}, mine="1"), "me", "t0")
    [entry] = obj["metadata"]["managedFields"]
    key = 'k:{"name":"a"}'
    assert entry["fieldsV1"]["f:spec"]["f:containers"][key] == {".": {}, "f:name": {}, "f:image": {}}
    obj = server_side_apply.applied(obj, _config({"c": "c:1"}, theirs="1"), "other", "t1", force=False)
    assert [each["name"] for each in obj["spec"]["containers"]] == ["c", "a", "b"]
    obj = server_side_apply.applied(obj, _config({"a": "a:2"}), "me", "t2", force=False)
    assert {each["name"]: each["image"] for each in obj["spec"]["containers"]} == {"a": "a:2", "c": "c:1"}
    assert obj["metadata"]["labels"] == {"theirs": "1"}


def test_apply_conflicts_only_where_both_want_something_else() -> None:
    obj = server_side_apply.applied_new(_config({"a": "a:1"}), "me", "t0")
    server_side_apply.applied(obj, _config({"a": "a:1"}), "other", "t1", force=False)
    with pytest.raises(ApiError, match="Apply failed with 1 conflict") as refused:
        server_side_apply.applied(obj, _config({"a": "a:2"}), "other", "t1", force=False)
    assert refused.value.code == 409
    assert refused.value.details["causes"][0]["field"] == '.spec.containers[{"name":"a"}].image'
    forced = server_side_apply.applied(obj, _config({"a": "a:2"}), "other", "t1", force=True)
    assert forced["spec"]["containers"] == [{"name": "a", "image": "a:2"}]
    given_up = server_side_apply.applied(forced, _config({"b": "b:1"}), "other", "t2", force=False)
    assert {each["name"]: each.get("image") for each in given_up["spec"]["containers"]} == {"a": None, "b": "b:1"}


@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["i:1", "i:2"]), min_size=1))
def test_what_is_applied_twice_changes_nothing_the_second_time(containers: Object) -> None:
    once = server_side_apply.applied_new(_config(containers), "me", "t0")
    assert server_side_apply.applied(once, _config(containers), "me", "t1", force=False) == once
    assert json.loads(json.dumps(once)) == once
