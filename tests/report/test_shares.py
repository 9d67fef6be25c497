"""What pods hold of GPUs, also as devices that kubelet allocated, and what they use of it."""

import json

import pytest
from msgspec import structs

from lamina.core.gpus import Inventory, MigDeviceCount, Mode
from lamina.core.sharing import Strategy
from lamina.ports.kube import Object
from lamina.ports.kube.fake import FakeKube
from lamina.report import cluster_reader
from lamina.report.cluster_use import ClusterUse
from lamina.report.pods import pod_rows
from lamina.report.shares import ShareRow, all_shares, held_shares
from tests.cli.commands import Commands
from tests.operations.agent_pages import gpu_lines, mig_lines, native_lines, serve, share_lines
from tests.worlds.clusters import cluster, container, grant, inventory, pod

SHARED = pod("shared", container(gpu=1), node="n")
PARTITION = pod("partition", container(mig_1g_5gb=1), node="n")


def native(mode: Mode | None, resource: str = "nvidia.com/gpu") -> Inventory:
    """A node whose two GPUs kubelet allocates."""
    of = inventory("n", 2, gpu=8)
    gpus = tuple(structs.replace(gpu, mode=mode, native_resource=resource) for gpu in of.gpus)
    return structs.replace(of, gpus=gpus)


def partitioned() -> Inventory:
    """A node whose only GPU has MIG devices, so that its inventory does not have the GPU."""
    of = inventory("n", 0, mig_1g_5gb=2)
    devices = MigDeviceCount(profile="1g.5gb", count=2, resource="nvidia.com/mig-1g.5gb")
    return structs.replace(of, mig_devices=(devices,))


def said(*pages: str) -> ClusterUse:
    use = ClusterUse()
    for page in pages:
        use.add("n", page)
    return use


async def shares(of: Object, node: Inventory, use: ClusterUse) -> list[ShareRow]:
    return list(held_shares(of, await cluster_reader.read(await cluster(node, of)), use))


@pytest.mark.parametrize(
    ("mode", "shown", "compute"), [(Mode.TIMESLICE, "timeslice", 0), (Mode.MPS, "mps", 0), (None, "whole", None)]
)
async def test_a_gpu_that_kubelet_chose_is_known_by_the_agent(
    mode: Mode | None, shown: str, compute: int | None
) -> None:
    use = said(native_lines("n", "shared", "GPU-n-1", limit_mib=15360, used_mib=700))
    (share,) = await shares(SHARED, native(mode), use)
    assert (share.container, share.gpu, share.index, share.mode) == ("main", "GPU-n-1", 1, shown)
    assert (share.memory_mib, share.used_mib, share.peak_mib, share.compute_percent) == (15360, 700, None, compute)


@pytest.mark.parametrize(
    ("strategy", "mode"), [(Strategy.TIME_SLICING, "timeslice"), (Strategy.MPS, "mps"), (Strategy.NONE, "whole")]
)
async def test_until_the_agent_publishes_the_mode_what_the_node_offers_says_it(strategy: Strategy, mode: str) -> None:
    of = native(None)
    node = structs.replace(of, native_resources=(structs.replace(of.native_resources[0], sharing=strategy),))
    (share,) = await shares(SHARED, node, said(native_lines("n", "shared", "GPU-n-0", limit_mib=15360)))
    assert share.mode == mode


async def test_a_mig_device_is_shown_with_its_gpu_and_profile() -> None:
    parts = gpu_lines("n", "GPU-n-0", 0, 0, index=2) + mig_lines("n", "GPU-n-0", "MIG-1", "MIG-2")
    use = said(parts, native_lines("n", "partition", "MIG-2", limit_mib=4864, used_mib=3))
    (share,) = await shares(PARTITION, partitioned(), use)
    assert (share.gpu, share.index, share.mode, share.mig) == ("GPU-n-0", 2, "mig", "1g.5gb")
    assert (share.memory_mib, share.used_mib) == (4864, 3)


async def test_what_cannot_be_attributed_to_a_pod_is_not_known() -> None:
    (share,) = await shares(SHARED, native(Mode.TIMESLICE), said(native_lines("n", "shared", "GPU-n-0", 15360)))
    assert share.used_mib is None


@pytest.mark.parametrize(
    "of",
    [
        pod("shared", container(gpu=1)),
        pod("shared", container(gpu=1), node="n", status={"phase": "Succeeded"}),
        pod("shared", container(gpu=1), node="n", status={"phase": "Failed"}),
        pod("other", container(gpu=1), node="n"),
        pod("shared", container(gpu=1), node="n", namespace="other"),
    ],
)
async def test_pods_without_a_place_or_that_have_ended_hold_nothing(of: Object) -> None:
    assert await shares(of, native(Mode.TIMESLICE), said(native_lines("n", "shared", "GPU-n-0", 15360, 1))) == []


async def test_a_granted_share_is_not_listed_a_second_time_as_a_device() -> None:
    runs = pod("runs", container(gpu=1, gpumem=1000), node="n")
    kube = await cluster(inventory(), runs, grant(runs, "n", 1000))
    use = said(share_lines("n", "runs", "GPU-n-0", data=5, peak=9))
    (share,) = held_shares(runs, await cluster_reader.read(kube), use)
    assert (share.memory_mib, share.used_mib, share.peak_mib) == (1000, 5, 9)


async def test_top_lists_devices_that_kubelet_chose() -> None:
    view = await cluster_reader.read(await cluster(native(Mode.TIMESLICE), SHARED))
    (row,) = all_shares(view, said(native_lines("n", "shared", "GPU-n-1", limit_mib=15360, used_mib=700)))
    assert (row.node, row.share.index, row.model) == ("n", 1, "Tesla T4")
    assert (row.share.limit_mib, row.share.used_mib) == (15360, 700)
    assert (row.share.peak_mib, row.busy_percent, row.refusals) == (None, None, 0)


async def test_without_agents_pods_have_what_they_count() -> None:
    (row,) = pod_rows(await cluster_reader.read(await cluster(native(Mode.TIMESLICE), SHARED)), None)
    assert (row.shares, dict(row.devices)) == ((), {"nvidia.com/gpu": 1})


async def partitions() -> FakeKube:
    kube = await cluster(partitioned(), PARTITION)
    parts = gpu_lines("n", "GPU-n-0", 60, 5, index=2) + mig_lines("n", "GPU-n-0", "MIG-1", "MIG-2")
    serve(kube, "n", parts + native_lines("n", "partition", "MIG-2", limit_mib=4864, used_mib=3))
    return kube


async def test_lamina_pods_shows_the_device_of_a_pod_and_what_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    head, row = (await Commands(monkeypatch, await partitions()).run("pods")).rows
    assert head == ["POD", "STATUS", "NODE", "GPU", "MEMORY", "USED", "PEAK", "COMPUTE", "WHY"]
    use = ["2", "(1g.5gb)", "4864", "MiB", "3", "MiB", "-"]
    assert row == ["partition", "Running", "n", *use, "1", "nvidia.com/mig-1g.5gb"]


async def test_lamina_gpus_lists_gpus_that_their_node_partitioned(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, await partitions())
    (row,) = json.loads((await commands.run("gpus", "-o", "json")).output)
    assert (row["gpu"], row["index"], row["model"], row["mode"]) == ("GPU-n-0", 2, "Tesla T4", "mig")
    figures = [row[f"memory{each}Mib"] for each in ("", "Granted", "Free", "Used")]
    assert (figures, row["computeGrantedPercent"]) == ([15360, 4864, 4864, 60], None)
    assert (row["slots"], row["slotsGranted"], row["slotsFree"]) == (2, 1, 1)
    assert (row["pods"], row["health"]) == (["default/partition"], "healthy")


async def test_lamina_gpus_counts_the_pods_that_share_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(native(Mode.TIMESLICE), SHARED)
    serve(kube, "n", native_lines("n", "shared", "GPU-n-1", limit_mib=15360))
    first, second = json.loads((await Commands(monkeypatch, kube).run("gpus", "-o", "json")).output)
    assert (first["pods"], second["pods"]) == ([], ["default/shared"])


async def test_only_nodes_of_the_pods_shown_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    other = pod("other", container(gpu=1, gpumem=1000), node="m", namespace="team")
    kube = await cluster(inventory("n"), inventory("m"), SHARED, other, grant(other, "m", 1000))
    await Commands(monkeypatch, kube).run("pods", "-n", "team")
    assert [name for verb, _, name in kube.calls if verb == "proxied"] == ["m:9394"]
