"""Time slices, clients of MPS and MIG devices on the page, as the agents know them."""

import msgspec
import pytest

from lamina.operations.dashboard.document import (
    ClusterDocument,
    ClusterFigures,
    ContainerLimits,
    GpuCard,
    NodeCard,
    PodCard,
)
from lamina.operations.dashboard.usage import with_usage
from lamina.operations.dashboard.viewers import ViewerAccess, visible
from lamina.report.cluster_use import ClusterUse
from tests.operations.agent_pages import gpu_lines, mig_lines, native_lines

T4 = 15360
MAIN = (ContainerLimits(container="main", limits={"nvidia.com/gpu": "1"}),)


def gpu(index: int, mode: str) -> GpuCard:
    return GpuCard(
        uuid=f"GPU-n-{index}", index=index, model="Tesla T4", memory_mib=T4, capacity_mib=T4, cores_capacity=100,
        slots=10, mode=mode, native="nvidia.com/gpu",
    )  # fmt: skip


def card(name: str) -> PodCard:
    return PodCard(namespace="default", name=name, state="running", phase="Running", node="n", limits=MAIN)


def document(*names: str, mode: str = "") -> ClusterDocument:
    """Pods on a node with two GPUs in a mode, or with none on its card."""
    gpus = (gpu(0, mode), gpu(1, mode)) if mode else ()
    figures = ClusterFigures(nodes=1, gpus=len(gpus), memory_mib=T4 * len(gpus))
    pods = {f"uid-{name}": card(name) for name in names}
    return ClusterDocument(cluster=figures, nodes={"n": NodeCard(name="n", gpus=gpus)}, pods=pods)


def said(*pages: str) -> ClusterUse:
    use = ClusterUse()
    use.add("n", "".join(pages))
    return use


def test_pods_with_time_slices_have_a_row_and_a_part_of_their_gpu() -> None:
    use = said(native_lines("n", "a", "GPU-n-1", T4, 70), native_lines("n", "b", "GPU-n-1", T4))
    shown = with_usage(document("a", "b", mode="timeslice"), use)
    (row,) = shown.pods["uid-a"].shares
    assert (row.container, row.index, row.mode, row.memory_mib, row.used_mib) == ("main", 1, "timeslice", T4, 70)
    assert [len(each.parts) for each in shown.nodes["n"].gpus] == [0, 2]
    parts = shown.nodes["n"].gpus[1].parts
    assert [(part.name, part.used_mib, part.unlimited) for part in parts] == [
        ("default/a", 70, True),
        ("default/b", None, True),
    ]


def test_clients_of_mps_have_the_limits_of_their_daemon() -> None:
    page = native_lines("n", "a", "GPU-n-0", 1536, 70)
    cores = 'lamina_container_cores_percent{node="n",namespace="default",pod="a",container="main",gpu="GPU-n-0"} 10\n'
    (part,) = with_usage(document("a", mode="mps"), said(page, cores)).nodes["n"].gpus[0].parts
    assert (part.memory_mib, part.cores, part.unlimited, part.used_mib) == (1536, 10, False, 70)


def test_gpus_that_their_node_partitioned_are_on_the_map() -> None:
    devices = mig_lines("n", "GPU-n-0", "MIG-1", "MIG-2") + mig_lines("n", "GPU-n-1", "MIG-3", profile="3g.20gb")
    gpus = gpu_lines("n", "GPU-n-0", 0, 0) + gpu_lines("n", "GPU-n-1", 0, 0, index=1, reason="XID 79")
    before = document("a")
    shown = with_usage(before, said(devices, gpus, native_lines("n", "a", "MIG-2", 4864, 3)))
    (row,) = shown.pods["uid-a"].shares
    assert (row.gpu, row.index, row.mode, row.mig, row.memory_mib) == ("GPU-n-0", 0, "mig", "1g.5gb", 4864)
    first, second = shown.nodes["n"].gpus
    assert (first.mode, first.slots, first.taken_slots, first.taken_mib) == ("mig", 2, 1, 4864)
    assert [(part.name, part.instances) for part in first.parts] == [("default/a", ("1g.5gb",))]
    assert (second.healthy, second.reason, second.parts) == (False, "XID 79", ())
    assert (shown.cluster.gpus, shown.cluster.memory_mib, shown.cluster.granted_mib) == (2, 2 * T4, 4864)
    assert before.nodes["n"].gpus == ()


def test_gpus_of_other_nodes_stay_there() -> None:
    devices = mig_lines("m", "GPU-m-0", "MIG-1") + gpu_lines("m", "GPU-m-0", 0, 0)
    use = ClusterUse()
    use.add(None, devices + native_lines("m", "x", "MIG-1", 4864))
    assert with_usage(document("a"), use).nodes["n"].gpus == ()


@pytest.mark.parametrize("changes", [{"node": ""}, {"limits": ()}, {"name": "other"}, {"namespace": "other"}])
def test_other_pods_get_no_rows(changes: dict[str, object]) -> None:
    shown = document(mode="timeslice")
    pods = {"u": msgspec.structs.replace(card("a"), **changes)}
    shown = with_usage(msgspec.structs.replace(shown, pods=pods), said(native_lines("n", "a", "GPU-n-0", T4)))
    assert shown.pods["u"].shares == () and not any(each.parts for each in shown.nodes["n"].gpus)


def test_pods_that_a_viewer_may_not_see_are_one_part_without_names() -> None:
    use = said(native_lines("n", "a", "GPU-n-0", T4, 70), native_lines("n", "b", "GPU-n-0", T4))
    shown = visible(with_usage(document("a", "b", mode="timeslice"), use), ViewerAccess(nodes=True, everywhere=False))
    (part,) = shown.nodes["n"].gpus[0].parts
    assert (part.name, part.pod, part.unlimited) == ("other namespaces", "", True)
