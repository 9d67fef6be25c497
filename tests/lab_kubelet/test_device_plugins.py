"""Device plugins over real gRPC, from registration to what a container gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

import grpc
import pytest

from lamina.ports.kube import NODES
from lamina.ports.kubelet import deviceplugin_pb2 as pb
from lamina.ports.kubelet import podresources_pb2 as resources
from lamina.ports.kubelet import podresources_pb2_grpc as resources_rpc
from tests.lab_kubelet.cluster import NODE, OneKubelet, container, is_running, phase, state, waiting
from tests.lab_kubelet.fake_plugin import RESOURCE, FakePlugin, device
from tests.waiting import wait_until

ONE: dict[str, Any] = {"resources": {"limits": {RESOURCE: "1"}}}


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[OneKubelet]:
    cluster = OneKubelet()
    cluster.start_kubelet("--gpu-env", "LD_LIBRARY_PATH=/sim")
    yield cluster
    cluster.close()


@pytest.fixture
def lab(own_cluster: OneKubelet) -> Iterator[OneKubelet]:
    """The cluster; every test's pods and plugins are gone when the next one begins."""
    before = len(own_cluster.made)
    yield own_cluster
    for name in own_cluster.made[before:]:
        if not own_cluster.gone(name):
            own_cluster.delete(name, grace_s=1)
        own_cluster.until_gone(name)
    for path in (own_cluster.root / "cdi").iterdir():
        path.unlink()


def plugin(lab: OneKubelet, devices: list[pb.Device], **options: bool) -> FakePlugin:
    made = FakePlugin(lab.root / "k" / "device-plugins", devices, **options)
    lab.run(made.begin())
    healthy = sum(entry.health == "Healthy" for entry in devices)
    until_amounts(lab, len(devices), healthy)
    return made


def amounts(lab: OneKubelet) -> tuple[int, int]:
    status = lab.get(NODES, NODE)["status"]
    return int(status["capacity"].get(RESOURCE, -1)), int(status["allocatable"].get(RESOURCE, -1))


def until_amounts(lab: OneKubelet, capacity: int, allocatable: int) -> None:
    wait_until(lambda: amounts(lab) == (capacity, allocatable), lambda: f"{(capacity, allocatable)}; {amounts(lab)}")


def holders(lab: OneKubelet) -> dict[tuple[str, str], list[tuple[str, list[str], list[int]]]]:
    """PodResources.List: entries of each container that holds something."""

    async def ask() -> resources.ListPodResourcesResponse:
        socket = lab.root / "k" / "pod-resources" / "kubelet.sock"
        async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
            stub: Any = resources_rpc.PodResourcesListerStub(channel)
            answer: resources.ListPodResourcesResponse = await stub.List(resources.ListPodResourcesRequest())
            return answer

    return listed(lab.run(ask()))


def listed(answer: resources.ListPodResourcesResponse) -> dict[tuple[str, str], list[tuple[str, list[str], list[int]]]]:
    return {
        (pod.name, entry.name): [
            (found.resource_name, list(found.device_ids), [node.ID for node in found.topology.nodes])
            for found in entry.devices
        ]
        for pod in answer.pod_resources
        for entry in pod.containers
    }


def test_node_shows_devices_their_health_and_their_loss(lab: OneKubelet) -> None:
    fake = plugin(lab, [device("a"), device("b", healthy=False)])
    lab.run(fake.report([device("a", healthy=False), device("b", healthy=False), device("c")]))
    until_amounts(lab, 3, 1)
    lab.run(fake.stop())
    until_amounts(lab, 3, 0)
    lab.run(fake.begin())
    until_amounts(lab, 3, 1)
    lab.run(fake.stop())


@pytest.mark.parametrize(
    ("version", "resource", "sentence"),
    [
        ("v1", RESOURCE, 'requested API version "v1" is not supported'),
        ("v1beta1", "gpu", 'the ResourceName "gpu" is invalid'),
        ("v1beta1", "kubernetes.io/gpu", "is invalid"),
    ],
)
def test_registration_is_refused(lab: OneKubelet, version: str, resource: str, sentence: str) -> None:
    fake = FakePlugin(lab.root / "k" / "device-plugins", [])
    lab.run(fake.start())
    with pytest.raises(grpc.aio.AioRpcError, match=sentence):
        lab.run(fake.register(version, resource))
    lab.run(fake.stop())


def test_a_container_gets_its_cdi_edits_and_others_see_no_gpu(lab: OneKubelet) -> None:
    fake = plugin(lab, [device("a"), device("b")], pre_start=True, preferred=True)
    fake.prefer = ["b"]
    fake.answer = lambda ids: pb.ContainerAllocateResponse(
        envs={"FROM_PLUGIN": "1", "TWICE": "plugin"}, cdi_devices=[pb.CDIDevice(name="lamina.dev/ticket=f00")]
    )
    write_cdi(lab, "f00", ["NVIDIA_VISIBLE_DEVICES=GPU-1"])
    tricks = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}, {"name": "TWICE", "value": "own"}]
    with_gpu = container("env; sleep 60", env=tricks, **ONE)
    name = lab.create(with_gpu, container("env; sleep 60", name="plain", env=tricks))
    lab.until(name, is_running, "running")
    shown = environment_of(lab, name, "main")
    assert {"NVIDIA_VISIBLE_DEVICES=GPU-1", "FROM_PLUGIN=1", "TWICE=own", "LD_LIBRARY_PATH=/sim"} <= shown
    plain = environment_of(lab, name, "plain")
    assert "NVIDIA_VISIBLE_DEVICES=void" in plain
    assert not any(line.startswith(("FROM_PLUGIN", "LD_LIBRARY_PATH")) for line in plain)
    assert fake.allocated == [["b"]]
    assert fake.prepared == [["b"]]
    assert (list(fake.asked[0].available_deviceIDs), fake.asked[0].allocation_size) == (["a", "b"], 1)
    lab.run(fake.stop())


@pytest.mark.parametrize("named", [True, False])
def test_a_node_may_refuse_the_variable_and_take_mounts(cluster: OneKubelet, named: bool) -> None:
    cluster.start_kubelet("--refuse-visible-devices")
    fake = plugin(cluster, [device("a")])
    fake.answer = lambda ids: pb.ContainerAllocateResponse(cdi_devices=[pb.CDIDevice(name="lamina.dev/ticket=f00")])
    mounts = [*map(cdi_mount, ("GPU-1", "GPU-2"))] if named else []
    write_cdi(cluster, "f00", ["NVIDIA_VISIBLE_DEVICES=GPU-1,GPU-2"], mounts)
    name = cluster.create(container("env; sleep 60", **ONE))
    cluster.until(name, is_running, "running")
    seen = "GPU-1,GPU-2" if named else "void"
    assert f"NVIDIA_VISIBLE_DEVICES={seen}" in environment_of(cluster, name, "main")
    cluster.run(fake.stop())


def cdi_mount(gpu: str) -> dict[str, str]:
    return {"hostPath": "/dev/null", "containerPath": f"/var/run/nvidia-container-devices/{gpu}"}


def environment_of(lab: OneKubelet, name: str, part: str) -> set[str]:
    """What `env` printed in a container."""
    wait_until(lambda: "PWD" in lab.log(name, part), "its environment")
    return set(lab.log(name, part).splitlines())


def write_cdi(lab: OneKubelet, name: str, env: list[str], mounts: Sequence[dict[str, str]] = ()) -> None:
    edits = "".join(f'          - "{entry}"\n' for entry in env)
    text = (
        f"cdiVersion: 0.6.0\nkind: lamina.dev/ticket\ndevices:\n  - name: '{name}'\n    containerEdits:\n"
        f"        env:\n{edits}        mounts: {json.dumps([*mounts])}\n"
    )
    draft = lab.root / "cdi" / f".{name}"
    draft.write_text(text)
    draft.rename(lab.root / "cdi" / f"{name}.yaml")


def test_start_waits_for_the_plugin_and_then_for_cdi(lab: OneKubelet) -> None:
    fake = plugin(lab, [device("a")], pre_start=True)
    fake.refuse_start = "no grant for pod x"
    fake.answer = lambda ids: pb.ContainerAllocateResponse(cdi_devices=[pb.CDIDevice(name="lamina.dev/ticket=1ate")])
    name = lab.create(container("sleep 60", **ONE))
    pod = lab.until(name, lambda pod: waiting(pod) == "CreateContainerConfigError", "refused")
    sentence = (
        "device plugin PreStartContainer rpc failed with err: rpc error: code = FailedPrecondition desc = no grant"
    )
    assert state(pod)["waiting"]["message"].startswith(sentence)
    assert phase(pod) == "Pending"
    fake.refuse_start = ""
    pod = lab.until(name, lambda pod: waiting(pod) == "CreateContainerError", "no specification yet")
    assert "unresolvable CDI devices lamina.dev/ticket=1ate" in state(pod)["waiting"]["message"]
    write_cdi(lab, "1ate", ["X=1"])
    pod = lab.until(name, is_running, "running")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert fake.allocated == [["a"]]
    lab.run(fake.stop())


def test_restart_prepares_again_with_the_same_devices(lab: OneKubelet) -> None:
    fake = plugin(lab, [device("a"), device("b")], pre_start=True)
    name = lab.create(container("exit 1", **ONE))
    wait_until(lambda: len(fake.prepared) >= 2, lambda: f"prepared twice; {lab.pod(name)['status']}")
    assert len(fake.allocated) == 1
    assert all(ids == fake.allocated[0] for ids in fake.prepared)
    lab.run(fake.stop())


def test_pod_fails_where_devices_are_missing(lab: OneKubelet) -> None:
    fake = plugin(lab, [device("a")])
    first = lab.create(container("sleep 60", **ONE))
    lab.until(first, is_running, "running")
    second = lab.create(container("sleep 60", **ONE))
    pod = lab.until(second, lambda pod: phase(pod) == "Failed", "refused")
    expected = (
        "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
        "Requested: 1, Available: 0, which is unexpected"
    )
    assert pod["status"]["reason"] == "UnexpectedAdmissionError"
    assert pod["status"]["message"] == f"Pod was rejected: {expected}"
    wait_until(lambda: [e for e in lab.events(second) if e["message"] == expected], "its event")
    lab.delete(second)
    lab.until_gone(second)
    lab.delete(first, grace_s=1)
    lab.until_gone(first)
    third = lab.create(container("sleep 60", **ONE))
    lab.until(third, is_running, "the device is free again")
    lab.run(fake.stop())


def test_an_error_of_allocate_is_final_and_gives_devices_back(lab: OneKubelet) -> None:
    fake = plugin(lab, [device("a")])
    fake.refuse_allocate = "broken"
    name = lab.create(container("sleep 60", **ONE))
    pod = lab.until(name, lambda pod: phase(pod) == "Failed", "refused")
    expected = "Allocate failed due to rpc error: code = Internal desc = broken, which is unexpected"
    assert pod["status"]["message"] == f"Pod was rejected: {expected}"
    fake.refuse_allocate = ""
    lab.until(lab.create(container("sleep 60", **ONE)), is_running, "the device is free")
    lab.run(fake.stop())


def test_unhealthy_devices_are_not_given_but_stay_with_who_has_them(lab: OneKubelet) -> None:
    fake = plugin(lab, [device("a")])
    first = lab.create(container("sleep 60", **ONE))
    lab.until(first, is_running, "running")
    lab.run(fake.report([device("a", healthy=False)]))
    until_amounts(lab, 1, 0)
    pod = lab.until(lab.create(container("true", **ONE)), lambda pod: phase(pod) == "Failed", "refused")
    assert "no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu" in pod["status"]["message"]
    assert is_running(lab.pod(first))
    lab.run(fake.stop())


def test_init_containers_hand_their_devices_on(lab: OneKubelet) -> None:
    fake = plugin(lab, [device(name) for name in "abc"])
    seen: list[Any] = []
    fake.in_allocate = lambda: note(lab, seen)
    two: dict[str, Any] = {"resources": {"limits": {RESOURCE: "2"}}}
    name = lab.create(
        container("sleep 60", **two),
        initContainers=[
            container("true", name="init", **ONE),
            container("sleep 60", name="side", restartPolicy="Always"),
        ],
    )
    lab.until(name, is_running, "running")
    assert fake.allocated[0][0] in fake.allocated[1]
    assert len(fake.allocated[1]) == 2
    assert all(not held for held in seen), "a pod is not listed inside Allocate"
    assert set(holders(lab)) == {(name, "main"), (name, "side")}
    lab.run(fake.stop())


async def note(lab: OneKubelet, seen: list[Any]) -> None:
    socket = lab.root / "k" / "pod-resources" / "kubelet.sock"
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        answer = await resources_rpc.PodResourcesListerStub(channel).List(resources.ListPodResourcesRequest())
    seen.append(listed(answer))


def test_pod_resources_names_the_holder_inside_pre_start(lab: OneKubelet) -> None:
    fake = plugin(lab, [device("a", numa=(0,)), device("b", numa=(0, 1)), device("c")], pre_start=True)
    seen: list[Any] = []
    fake.in_start = lambda: note(lab, seen)
    three: dict[str, Any] = {"resources": {"limits": {RESOURCE: "3"}}}
    name = lab.create(container("sleep 60", **three))
    lab.until(name, is_running, "running")
    entries = sorted(seen[0][name, "main"])
    assert entries == [(RESOURCE, ["a"], [0]), (RESOURCE, ["b"], [0]), (RESOURCE, ["b"], [1]), (RESOURCE, ["c"], [])]
    lab.run(fake.stop())


def test_plugin_may_come_back_while_pods_run(lab: OneKubelet) -> None:
    fake = plugin(lab, [device("a"), device("b")], pre_start=True)
    name = lab.create(container("sleep 60", **ONE))
    lab.until(name, is_running, "running")
    lab.run(fake.stop())
    until_amounts(lab, 2, 0)
    again = plugin(lab, [device("a"), device("b")], pre_start=True)
    assert is_running(lab.pod(name))
    second = lab.create(container("sleep 60", **ONE))
    lab.until(second, is_running, "running")
    assert set(again.allocated[0]) | set(fake.allocated[0]) == {"a", "b"}
    lab.run(again.stop())


def test_a_pod_whose_plugin_is_replaced_inside_allocate_is_refused_and_can_go(lab: OneKubelet) -> None:
    fake = plugin(lab, [device("a"), device("b")])
    asked, answer = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        asked.set()
        await answer.wait()

    fake.in_allocate = hang
    name = lab.create(container("sleep 60", **ONE))
    lab.run(asked.wait())
    fake.in_allocate = None
    lab.run(fake.register())
    pod = lab.until(name, lambda pod: phase(pod) == "Failed", "refused")
    assert "endpoint nvidia.com/gpu has been stopped" in pod["status"]["message"]
    lab.until(lab.create(container("sleep 60", **ONE)), is_running, "the devices are free")
    answer.set()
    lab.delete(name)
    lab.until_gone(name)
    lab.run(fake.stop())


def test_a_container_whose_plugin_is_replaced_inside_its_start_is_tried_again(lab: OneKubelet) -> None:
    fake = plugin(lab, [device("a")], pre_start=True)
    asked, answer = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        asked.set()
        await answer.wait()

    fake.in_start = hang
    name = lab.create(container("sleep 60", **ONE))
    lab.run(asked.wait())
    fake.in_start = None
    lab.run(fake.register())
    lab.until(name, is_running, "running")
    answer.set()
    lab.run(fake.stop())


def test_kubelet_that_comes_back_keeps_devices_and_waits_for_the_plugin(cluster: OneKubelet) -> None:
    cluster.start_kubelet()
    fake = plugin(cluster, [device("a"), device("b")], pre_start=True)
    name = cluster.create(container("sleep 60", **ONE))
    cluster.until(name, is_running, "running")
    held = holders(cluster)[name, "main"]
    cluster.end_kubelet()
    cluster.run(fake.stop())
    cluster.start_kubelet()
    assert not (cluster.root / "k" / "device-plugins" / "fake.sock").exists()
    assert amounts(cluster) == (0, 0)
    pod = cluster.until(name, lambda pod: waiting(pod) == "CreateContainerConfigError", "waits for its plugin")
    assert "endpoint not found in cache for a registered resource" in state(pod)["waiting"]["message"]
    again = plugin(cluster, [device("a"), device("b")], pre_start=True)
    pod = cluster.until(name, is_running, "running again")
    assert holders(cluster)[name, "main"] == held
    assert again.allocated == []
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
    cluster.run(again.stop())
