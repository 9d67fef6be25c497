"""Hiding GPUs from containers that request none, applied with a JSON Patch library as the API server would."""

import copy
from typing import Any

import jsonpatch
import pytest

from lamina.configuration import DEFAULT, Config, load
from lamina.dialects import hide_from_ephemeral, hide_gpus
from lamina.errors import BadInput
from tests.dialects.pods import Pod, changes_of, container, pod

NAME = "NVIDIA_VISIBLE_DEVICES"
NONE = {"name": NAME, "value": "none"}
ALL = {"name": NAME, "value": "all"}
FROM_FIELD = {"name": NAME, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
OTHER = {"name": "PATH", "value": "/bin"}
RENAMED = load("hami: {resourceCountName: a.io/gpu}", "c")


def hidden(manifest: Pod, config: Config = DEFAULT) -> Pod:
    """The pod as it is stored. Hiding again changes nothing."""
    patch = [change.to_json() for change in hide_gpus(copy.deepcopy(manifest), config)]
    stored: Pod = jsonpatch.apply_patch(manifest, patch)
    assert hide_gpus(stored, config) == ()
    return stored


def env_of(one: dict[str, Any], **spec: Any) -> Any:
    return hidden(pod(one, **spec))["spec"]["containers"][0].get("env")


@pytest.mark.parametrize("env", [None, [], [OTHER], [ALL], [FROM_FIELD], [NONE, ALL], [ALL, OTHER, ALL]])
def test_the_last_entry_of_a_container_without_a_gpu_is_none(env: Any) -> None:
    given = container() | ({} if env is None else {"env": env})
    assert env_of(given) == [*(env or ()), NONE]


def test_what_comes_after_the_entry_changes_nothing() -> None:
    assert env_of(container() | {"env": [ALL, NONE, OTHER]}) == [ALL, NONE, OTHER]


@pytest.mark.parametrize("spec", [{"schedulerName": "mine"}, {"nodeName": "node-0"}, {"runtimeClassName": "nvidia"}])
def test_nothing_in_the_pod_prevents_it(spec: dict[str, str]) -> None:
    assert env_of(container(), **spec) == [NONE]


def test_each_container_counts_for_itself() -> None:
    sidecar = container("sidecar") | {"restartPolicy": "Always"}
    stored = hidden(pod(container("main", gpu=1), container("other"), init=(container("init"), sidecar)))["spec"]
    assert [one.get("env") for one in stored["containers"]] == [None, [NONE]]
    assert [one.get("env") for one in stored["initContainers"]] == [[NONE], [NONE]]


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("nvidia.com/gpu", DEFAULT),
        ("nvidia.com/gpu.shared", DEFAULT),
        ("nvidia.com/mig-1g.5gb", DEFAULT),
        ("nvidia.com/mig-1g.10gb.me.shared", DEFAULT),
        ("volcano.sh/vgpu-number", DEFAULT),
        ("volcano.sh/gpu-mem.128Mi", DEFAULT),
        ("aliyun.com/gpu-mem", DEFAULT),
        ("a.io/gpu", RENAMED),
    ],
)
def test_who_requests_a_gpu_gets_what_the_device_plugin_says(name: str, config: Config) -> None:
    one = container(**{name: "1"}) | {"env": [ALL, OTHER, FROM_FIELD]}
    assert hidden(pod(one), config)["spec"]["containers"][0]["env"] == [OTHER]
    with pytest.raises(BadInput, match="already assigned to node node-0; remove nodeName"):
        hide_gpus(pod(one, nodeName="node-0"), config)


@pytest.mark.parametrize(
    ("name", "amount"),
    [
        ("nvidia.com/gpu", "0"),
        ("nvidia.com/gpu", "nonsense"),
        ("nvidia.com/gpumem", "1000"),
        ("nvidia.com/mig-nothing", "1"),
        ("nvidia.com/rdma-0", "1"),
        ("a.io/gpu", "1"),
    ],
)
def test_a_resource_for_which_kubelet_finds_no_gpu_shows_none(name: str, amount: str) -> None:
    assert env_of(container(**{name: amount}), schedulerName="mine") == [NONE]


def test_what_admission_fills_in_counts() -> None:
    manifest = pod(container(gpumem=1000))
    filled = jsonpatch.apply_patch(manifest, [change.to_json() for change in changes_of(manifest, DEFAULT)])
    assert hide_gpus(filled, DEFAULT) == ()


@pytest.mark.parametrize("field", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize(
    "path",
    [
        "/var/run/nvidia-container-devices/all",
        "/var/run/nvidia-container-devices",
        "/run/nvidia-container-devices/GPU-1",
        "//var/./run//nvidia-container-devices/0/",
        "var/run/x/../nvidia-container-devices/cdi/nvidia.com/gpu/all",
    ],
)
def test_a_mount_that_names_devices_is_refused(field: str, path: str) -> None:
    one = container("odd") | {"volumeMounts": [{"name": "v", "mountPath": "/data"}, {"name": "v", "mountPath": path}]}
    manifest = pod(container(gpu=1))
    manifest["spec"][field] = [one]
    with pytest.raises(BadInput, match=r'container "odd": a mount at .* names devices') as refused:
        (*hide_gpus(manifest, DEFAULT), *hide_from_ephemeral(manifest, ()))
    assert "\n" not in str(refused.value)


def test_other_mounts_are_not() -> None:
    paths = ("/var/run", "/run/nvidia-container-devices-of-mine", "/data/run/nvidia-container-devices")
    assert env_of(container() | {"volumeMounts": [{"name": "v", "mountPath": path} for path in paths]}) == [NONE]


@pytest.mark.parametrize("key", ["cdi.k8s.io/gpus", "nvidia.cdi.k8s.io/x", "cdi.k8s.io"])
def test_an_annotation_that_names_devices_is_refused(key: str) -> None:
    with pytest.raises(BadInput, match=f"the annotation {key} names devices without requesting them"):
        hide_gpus(pod(container(gpu=1), annotations={key: "nvidia.com/gpu=all"}), DEFAULT)
    assert hide_gpus(pod(container(gpu=1), annotations={"mycdi.k8s.io/x": "x", "a/cdi.k8s.io": "x"}), DEFAULT) == ()


def test_only_new_ephemeral_containers_are_changed() -> None:
    """The API server refuses a change of those that exist."""
    manifest = pod(container(gpu=1) | {"env": [ALL]}, nodeName="node-0", annotations={"cdi.k8s.io/x": "y"})
    manifest["spec"]["ephemeralContainers"] = [container("old") | {"env": [ALL]}, container("new") | {"env": [ALL]}]
    (change,) = hide_from_ephemeral(manifest, {"old"})
    assert change == ("/spec/ephemeralContainers/1/env/-", NONE, "add")
    del manifest["spec"]["ephemeralContainers"]
    assert hide_from_ephemeral(manifest, ()) == ()
