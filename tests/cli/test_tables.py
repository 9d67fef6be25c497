"""What people read in a terminal: nothing that must be read or copied is cut."""

import io

import msgspec
import pytest
from rich.console import Console
from rich.table import Table

from lamina.cli.tables import print_pods
from lamina.cli.terminal import print_table
from lamina.configuration import DEFAULT
from lamina.core.gpus import Gpu, Inventory, MigInstance, Mode
from lamina.core.grants import ContainerGrant, Grant, Share
from lamina.core.survivors import Survivor
from lamina.ledger.ledger import Ledger
from lamina.ports.kube import Object
from lamina.report.cluster_use import ClusterUse
from lamina.report.cluster_view import ClusterView
from lamina.report.shares import all_shares

INVENTORY = Inventory(
    node="node-0",
    driver="515.86.01",
    gpus=(Gpu(uuid="GPU-1", index=0, model="Tesla T4", memory_mib=15360, capacity_mib=15360),),
)


def pod(name: str, *, node: str = "", phase: str = "Pending", memory: int = 1000) -> Object:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(memory)}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"limits": limits}}]},
        "status": {"phase": phase},
    }


def cluster(*pods: Object, inventories: tuple[Inventory, ...] = (INVENTORY,)) -> ClusterView:
    share = Share(gpu="GPU-1", memory_mib=1000)
    grants = {
        each["metadata"]["uid"]: Grant(
            pod=each["metadata"]["name"],
            pod_uid=each["metadata"]["uid"],
            node="node-0",
            dialect="hami",
            containers=(ContainerGrant(name="main", shares=(share,)),),
        )
        for each in pods
        if each["spec"]["nodeName"]
    }
    ledger = Ledger()
    for inventory in inventories:
        confirmed = tuple(f"{each.namespace}/{each.pod_uid}" for each in inventory.survivors)
        ledger.observe_inventory(inventory, confirmed=confirmed)
    return ClusterView(DEFAULT, list(pods), grants, {inventory.node: inventory for inventory in inventories}, ledger)


SURVIVOR = Survivor(
    namespace="default",
    pod="old",
    pod_uid="uid-of-old",
    containers=(ContainerGrant(name="main", shares=(Share(gpu="GPU-1", memory_mib=9000, cores=30),)),),
)
OUTLIVED = msgspec.structs.replace(INVENTORY, survivors=(SURVIVOR,))


def printed(seen: ClusterView, width: int = 200) -> list[str]:
    text = io.StringIO()
    print_pods(Console(file=text, width=width), seen, "default")
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_an_instance_is_shown_with_its_gpu() -> None:
    seen = cluster(pod("a", node="node-0", phase="Running"))
    share = Share(gpu="GPU-1", memory_mib=4864, cores=14, mode=Mode.MIG, mig=MigInstance(profile="1g.5gb", start=6))
    grant = msgspec.structs.replace(seen.grants["uid-of-a"], containers=(ContainerGrant(name="main", shares=(share,)),))
    (row,) = printed(ClusterView(DEFAULT, seen.pods, {"uid-of-a": grant}, seen.inventories, seen.ledger))[1:]
    assert row.split() == ["a", "Running", "node-0", "0", "(1g.5gb", "at", "6)", "4864", "MiB", "14", "%,", "cap"]


def test_containers_are_named_where_a_pod_has_several() -> None:
    seen = cluster(pod("a", node="node-0", phase="Running"), pod("b", node="node-0", phase="Running"))
    shares = (Share(gpu="GPU-1", memory_mib=2000),)
    containers = (
        ContainerGrant(name="prepare", shares=(Share(gpu="GPU-1", memory_mib=6000),), init=True),
        ContainerGrant(name="log", shares=shares, init=True, sidecar=True),
        ContainerGrant(name="train", shares=shares),
    )
    grants = {**seen.grants, "uid-of-a": msgspec.structs.replace(seen.grants["uid-of-a"], containers=containers)}
    head, *lines = printed(ClusterView(DEFAULT, seen.pods, grants, seen.inventories, seen.ledger))
    assert head.split()[-2:] == ["CONTAINER", "WHY"]
    assert [line.split()[-5:] for line in lines] == [
        ["6000", "MiB", "shared", "prepare", "(init)"],
        ["0", "2000", "MiB", "shared", "log"],
        ["0", "2000", "MiB", "shared", "train"],
        ["0", "1000", "MiB", "shared", "main"],
    ]


def test_memory_that_may_be_borrowed_is_shown_after_what_is_guaranteed() -> None:
    seen = cluster(pod("a", node="node-0", phase="Running"))
    shares = (Share(gpu="GPU-1", memory_mib=2000, most_memory_mib=5000),)
    grant = msgspec.structs.replace(seen.grants["uid-of-a"], containers=(ContainerGrant(name="main", shares=shares),))
    held = ClusterView(DEFAULT, seen.pods, {"uid-of-a": grant}, seen.inventories, seen.ledger)
    assert " 2000 to 5000 MiB " in printed(held)[1]
    assert [row.share.limit_mib for row in all_shares(held, ClusterUse())] == [5000]


@pytest.mark.parametrize("width", [20, 80, 200])
def test_no_cell_is_truncated_at_any_width(width: int) -> None:
    text = io.StringIO()
    table = Table("NAME", "PATH", box=None, pad_edge=False)
    table.add_row("a" * 40, "b" * 60)
    print_table(Console(file=text, width=width), table)
    header, row = text.getvalue().splitlines()
    assert row.split() == ["a" * 40, "b" * 60]
    assert header.index("PATH") == row.index("b")


def test_columns_move_together_where_that_makes_them_fit() -> None:
    text = io.StringIO()
    table = Table("A", "B", "C", box=None, pad_edge=False)
    table.add_row("a" * 10, "b" * 10, "c" * 10)
    print_table(Console(file=text, width=32), table)
    assert text.getvalue().splitlines()[1] == f"{'a' * 10} {'b' * 10} {'c' * 10}"


def test_reasons_are_numbered_once_and_follow_in_one_line_each() -> None:
    waiting = [pod(f"waits-{number}", memory=900000) for number in range(3)]
    lines = printed(cluster(pod("runs", node="node-0", phase="Running"), *waiting), width=40)
    assert lines[1].split() == ["runs", "Running", "node-0", "0", "1000", "MiB", "shared"]
    assert [line.split() for line in lines[2:5]] == [[f"waits-{number}", "Pending", "(1)"] for number in range(3)]
    assert lines[5:] == ["(1) node node-0: needs 900000 MiB; the largest GPU has 15360 MiB"]


@pytest.mark.parametrize(("phase", "mark"), [("Succeeded", []), ("Failed", ["(1)"])])
def test_a_pod_that_has_ended_holds_nothing(phase: str, mark: list[str]) -> None:
    row = printed(cluster(pod("ended", node="node-0", phase=phase)))[1].split()
    assert row == ["ended", phase, "node-0", *mark]


def test_a_deleted_pod_whose_processes_run_is_listed_with_what_it_holds() -> None:
    lines = printed(cluster(pod("p", node="node-0", phase="Running"), inventories=(OUTLIVED,)))
    assert lines[2].split() == ["old", "Deleted", "node-0", "0", "9000", "MiB", "30", "%,", "no", "limit", "(1)"]
    assert lines[3] == "(1) it is deleted, but its processes still run, so its shares count"


def test_survivors_are_listed_without_other_pods_and_in_their_namespace_alone() -> None:
    seen = cluster(inventories=(OUTLIVED,))
    assert printed(seen)[1].startswith("old")
    text = io.StringIO()
    assert not print_pods(Console(file=text), seen, "other")
    assert print_pods(Console(file=text, width=200), seen, None)
    assert "default" in text.getvalue()
