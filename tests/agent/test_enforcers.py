"""The driver's own limits: set on the right cgroup, confirmed, published, and cleared; else the facade alone holds."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lamina.agent.containers.paths import folder_name
from lamina.agent.limits.driver_limits import DriverLimits
from lamina.enforcement import DeviceLimit, Limits, write_container
from lamina.ports import cgroups
from lamina.ports.kube import PODS
from lamina.ports.nvml.fake import FakeNvml
from tests.agent.node import FACTS, GPU, Node, container
from tests.worlds.planted import Planted

MIB = 1 << 20
ID = "4f3c" * 16


class Setting:
    """A node whose driver limits cgroups, with a tree of them."""

    def __init__(self, node: Node, root: Path) -> None:
        self.node, self.root = node, root
        self.nvml = FakeNvml(FACTS)
        self.nvml.limiting = True
        self.published: list[tuple[str, ...]] = []
        root.mkdir()
        (root / "cgroup.controllers").write_text("cpu memory")
        context = replace(node.context, nvml=self.nvml)
        self.enforcer = DriverLimits(context, gpus=lambda: tuple(GPU), publish=self.published.append, root=root)

    async def started(self, *gpus: int, ident: str = ID) -> str:
        """A running pod with 1000 MiB of each of the GPUs; its UID."""
        uid = await self.node.pod("p", container("main"))
        await self.node.admit("p", {"main": ["ticket-0"]})
        await self.node.preparer.prepare(["ticket-0"])
        devices = tuple(DeviceLimit(uuid=GPU[gpu], memory_bytes=1000 * MIB) for gpu in gpus)
        write_container(self.node.places.containers / folder_name(uid, "main"), Limits(devices=devices))
        await self.status(ident)
        return uid

    async def status(self, ident: str) -> None:
        one = {"name": "main", "containerID": f"containerd://{ident}", "state": {"running": {}}}
        patch = {"status": {"containerStatuses": [one]}}
        kube = self.node.kube
        await kube.patch(PODS, "p", patch, namespace="default", subresource="status")

    def leaf(self, uid: str, ident: str = ID, *, systemd: bool = True) -> Path:
        slices = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid.replace('-', '_')}.slice"
        path = f"{slices}/cri-containerd-{ident}.scope" if systemd else f"kubepods/besteffort/pod{uid}/{ident}"
        (self.root / path).mkdir(parents=True)
        return self.root / path


@pytest.fixture
def setting(node: Node, tmp_path: Path) -> Setting:
    return Setting(node, tmp_path / "cgroup")


@pytest.mark.parametrize("systemd", [True, False])
async def test_the_driver_holds_every_gpu_of_a_running_container(setting: Setting, systemd: bool) -> None:
    uid = await setting.started(0, 2)
    leaf = setting.leaf(uid, systemd=systemd)
    await setting.enforcer.reconcile()
    await setting.enforcer.reconcile()
    assert setting.nvml.memory_limits == {(GPU[0], leaf): 1000 * MIB, (GPU[2], leaf): 1000 * MIB}
    assert setting.published == [(f"{uid}/main",)]


async def test_a_container_without_a_cgroup_yet_is_held_later(setting: Setting) -> None:
    uid = await setting.started(0)
    await setting.enforcer.reconcile()
    assert setting.nvml.memory_limits == {} and setting.published == []
    setting.leaf(uid)
    await setting.enforcer.reconcile()
    assert setting.enforcer.limited == (f"{uid}/main",)


async def test_a_restarted_container_is_held_in_its_new_cgroup(setting: Setting) -> None:
    uid = await setting.started(0)
    setting.leaf(uid)
    await setting.enforcer.reconcile()
    await setting.status("beef" * 16)
    leaf = setting.leaf(uid, "beef" * 16)
    await setting.enforcer.reconcile()
    assert setting.nvml.memory_limits[GPU[0], leaf] == 1000 * MIB


async def test_the_limit_is_cleared_when_the_container_is_released(setting: Setting) -> None:
    uid = await setting.started(0)
    setting.leaf(uid)
    await setting.enforcer.reconcile()
    setting.node.record.drop([a.name for a in setting.node.record.allocations])
    await setting.enforcer.reconcile()
    assert setting.nvml.memory_limits == {} and setting.published[-1] == ()


async def test_where_the_driver_refuses_the_facade_alone_holds(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    uid = await setting.started(0)
    setting.leaf(uid)
    setting.nvml.limiting = False
    await setting.enforcer.reconcile()
    await setting.enforcer.reconcile()
    assert setting.enforcer.limited == () and setting.published == []
    assert sum("The facade alone limits" in line for line in caplog.messages) == 1


async def test_it_is_used_only_where_kernel_and_driver_can(setting: Setting, tmp_path: Path) -> None:
    assert await setting.enforcer.supported(tuple(GPU))
    assert not await setting.enforcer.supported(())
    (setting.root / "cgroup.controllers").unlink()
    assert not await setting.enforcer.supported(tuple(GPU))


def test_a_leaf_is_never_guessed(tmp_path: Path) -> None:
    uid = "0a1b2c3d-0000-4000-8000-000000000001"
    (tmp_path / f"kubepods/pod{uid}/{ID}").mkdir(parents=True)
    assert cgroups.container_cgroup(uid, f"containerd://{ID}", tmp_path) == tmp_path / f"kubepods/pod{uid}/{ID}"
    for wrong in ("", "containerd://", "containerd://4f", "containerd://../..", "containerd://*" * 3):
        assert cgroups.container_cgroup(uid, wrong, tmp_path) is None
    assert cgroups.container_cgroup(uid.replace("1", "2"), f"containerd://{ID}", tmp_path) is None
    (tmp_path / f"kubepods/pod{uid}/other-{ID}").mkdir()
    assert cgroups.container_cgroup(uid, f"containerd://{ID}", tmp_path) is None


def test_finding_a_leaf_looks_into_no_other_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    scan, uid = os.scandir, "0a1b2c3d-0000-4000-8000-000000000001"

    def looking(path: Path) -> object:
        looked.append(str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", looking)
    for number in range(1, 4):
        pod = f"kubepods/burstable/pod{uid[:-1]}{number}"
        (tmp_path / pod / ID).mkdir(parents=True)
    assert (
        cgroups.container_cgroup(uid, f"containerd://{ID}", tmp_path) == tmp_path / f"kubepods/burstable/pod{uid}/{ID}"
    )
    assert not [path for path in looked if f"pod{uid[:-1]}2" in path or f"pod{uid[:-1]}3" in path]


async def test_an_unexpected_answer_of_the_driver_leaves_the_limit_to_the_facade(setting: Setting) -> None:
    node = setting.node
    uid = await setting.started(0)
    setting.leaf(uid)

    class FailingNvml(FakeNvml):
        async def limit_memory(self, uuid: str, cgroup: Path, limit: int | None) -> None:
            raise Planted("planted")

    failing = FailingNvml(FACTS)
    context = replace(node.context, nvml=failing)
    limits = DriverLimits(context, gpus=lambda: tuple(GPU), publish=lambda _: None, root=setting.root)
    await limits.reconcile()
    assert limits.limited == ()
    assert node.context.aside.counts == {"limit of the driver": 1}
