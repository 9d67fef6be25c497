"""`lamina fits`: pods of a manifest on the cluster as it is now."""

import json
from pathlib import Path
from typing import Any

import pytest

from lamina.ports.kube import RESOURCE_QUOTAS, Object
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands, Ended
from tests.operations.clusters import cluster, container, grant, inventory, pod


class Fits:
    """`lamina fits` about manifests on a cluster."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, kube: FakeKube) -> None:
        self._commands = Commands(monkeypatch, kube)
        self._file = folder / "web.yaml"
        self.kube = kube

    async def ask(self, *objects: Object) -> Ended:
        self._file.write_text("\n---\n".join(map(json.dumps, objects)))
        return await self._commands.run("fits", "-f", str(self._file))


@pytest.fixture
async def fits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fits:
    """One node with two GPUs of 15360 MiB, of which the first has 1000 MiB free."""
    runs = pod("runs", container(gpu=1, gpumem=14360), node="n")
    return Fits(monkeypatch, tmp_path, await cluster(inventory("n", 2), runs, grant(runs, "n", 14360)))


def manifest(kind: str = "Pod", name: str = "web", replicas: int | None = None, **limits: int) -> Object:
    spec: dict[str, Any] = {"containers": [container(**limits)]}
    if kind != "Pod":
        spec = {"template": {"spec": spec}} | ({} if replicas is None else {"replicas": replicas})
    return {"kind": kind, "metadata": {"name": name}, "spec": spec}


async def test_a_pod_that_fits_is_answered_with_its_gpu(fits: Fits) -> None:
    before = [obj for _, obj in fits.kube.stored()]
    assert await fits.ask(manifest(gpu=1, gpumem=2000)) == Ended(0, "Pod web fits now on n GPU 1.\n")
    assert [obj for _, obj in fits.kube.stored()] == before


async def test_a_pod_that_misses_is_answered_with_numbers_and_what_to_change(fits: Fits) -> None:
    ended = await fits.ask(manifest(gpu=2, gpumem=2000))
    assert ended.code == 1 and ended.output.splitlines() == [
        "Pod web does not fit now: node n: needs 2 GPUs; 1 fits; on 1 of 2 GPUs: needs 2000 MiB; the best of them has "
        "1000 MiB free.",
        "  To change that on n: request at most 1000 MiB, or wait until 1000 MiB more are free on a GPU of the node.",
    ]


async def test_pods_take_their_places_from_those_after_them(fits: Fits) -> None:
    ended = await fits.ask(manifest("Deployment", replicas=4, gpu=1, gpumem=7000), manifest(name="last", gpumem=1000))
    assert ended.code == 1 and ended.output.splitlines() == [
        "2 of 4 pods of Deployment web fit now: 2 on n GPU 1.",
        "One more pod of Deployment web does not fit now: node n: needs 7000 MiB; the best GPU has 1360 MiB free.",
        "  To change that on n: request at most 1360 MiB, or wait until 5640 MiB more are free on a GPU of the node.",
        "Pod last fits now on n GPU 1.",
    ]


async def test_all_pods_of_a_workload(fits: Fits) -> None:
    ended = await fits.ask(manifest("Deployment", replicas=3, gpumem=1000))
    assert ended.code == 0 and ended.output.startswith("All 3 pods of Deployment web fit now: ")
    assert (await fits.ask(manifest("Deployment", replicas=0, gpumem=1000))).code == 0


async def test_nodes_with_other_reasons_are_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fits = Fits(monkeypatch, tmp_path, await cluster(inventory("a", 1), inventory("b", 2)))
    ended = await fits.ask(manifest(gpu=3, gpumem=1000))
    lines = ended.output.splitlines()
    assert ended.code == 1 and set(lines[1:3]) == {
        "  a: needs 3 GPUs; this node has 1",
        "  b: needs 3 GPUs; this node has 2",
    }
    assert lines[3].startswith("  To change that on b: request at most 2 GPUs")


async def test_a_quota_counts_with_the_pods_before(fits: Fits) -> None:
    hard = {"hard": {"limits.nvidia.com/gpumem": "18000"}}
    await fits.kube.create(RESOURCE_QUOTAS, {"metadata": {"name": "q", "namespace": "default"}, "spec": hard})
    ended = await fits.ask(manifest("Deployment", replicas=2, gpumem=3000))
    assert ended.code == 1 and ended.output.splitlines() == [
        "1 of 2 pods of Deployment web fit now: 1 on n GPU 1.",
        "One more pod of Deployment web does not fit: quota q allows 18000 of nvidia.com/gpumem; 17360 are used and "
        "the pod requests 3000.",
        "  To change that: request less, or raise the quota of namespace default.",
    ]


async def test_native_devices_are_counted_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fits = Fits(monkeypatch, tmp_path, await cluster(inventory("n", gpus=0, mig_1g_5gb=2)))
    ended = await fits.ask(manifest("Deployment", replicas=3, mig_1g_5gb=1))
    assert ended.code == 1
    assert ended.output.startswith("2 of 3 pods of Deployment web fit now: 2 on n, where kubelet chooses the devices.")
    assert "all 2 nvidia.com/mig-1g.5gb are allocated" in ended.output
    without = Fits(monkeypatch, tmp_path, await cluster(inventory("n")))
    ended = await without.ask(manifest(mig_1g_5gb=1))
    assert ended == Ended(1, "Pod web does not fit now: no node offers nvidia.com/mig-1g.5gb.\n")


async def test_pods_without_gpus_fit(fits: Fits) -> None:
    assert await fits.ask(manifest()) == Ended(0, "Pod web requests no GPU.\n")


async def test_bad_input_ends_with_2(fits: Fits) -> None:
    ended = await fits.ask(manifest(gpumem=-1))
    assert ended.code == 2 and ended.error.startswith("Pod web: ") and "nvidia.com/gpumem" in ended.error
    assert (await fits.ask({"kind": "Service", "metadata": {"name": "s"}})).code == 2
