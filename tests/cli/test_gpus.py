"""`lamina gpus`: a row for each GPU, and what is not known is `-`."""

import json
from typing import Any

import msgspec
import pytest

from lamina.core.gpus import Inventory, Mode
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands, Ended
from tests.operations.agent_pages import gpu_lines, serve, share_lines
from tests.worlds.clusters import cluster, container, gpu, grant, inventory, pod


def changed(of: Inventory, index: int, **fields: Any) -> Inventory:
    gpus = list(of.gpus)
    gpus[index] = msgspec.structs.replace(gpus[index], **fields)
    return msgspec.structs.replace(of, gpus=tuple(gpus))


async def three_gpus() -> FakeKube:
    runs = pod("runs", container(gpu=1, gpumem=1000), node="n")
    ended = pod("ended", container(gpu=1, gpumem=2000), node="n", status={"phase": "Succeeded"})
    other = changed(inventory("m"), 0, cordoned=True, healthy=False, reason="XID 79")
    kube = await cluster(inventory("n", 2), other, runs, ended, grant(runs, "n", 1000), grant(ended, "n", 2000))
    serve(kube, "n", gpu_lines("n", "GPU-n-0", 303, 12.4) + gpu_lines("n", "GPU-n-1", 0, 0))
    return kube


async def run(monkeypatch: pytest.MonkeyPatch, kube: FakeKube, *options: str) -> Ended:
    return await Commands(monkeypatch, kube).run("gpus", *options)


async def as_json(monkeypatch: pytest.MonkeyPatch, kube: FakeKube, *options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((await run(monkeypatch, kube, "-o", "json", *options)).output)
    return rows


async def test_the_table_has_a_row_for_each_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    head, *rows, silent = (await run(monkeypatch, await three_gpus())).output.splitlines()
    assert head.split() == (
        ["NODE", "GPU", "MODEL", "MODE", "GRANTED", "USED", "FREE", "COMPUTE", "BUSY", "SLOTS", "STATE", "PODS"]
    )
    assert [" ".join(row.split()) for row in rows] == [
        "m 0 Tesla T4 idle 0 of 15360 MiB - 15360 MiB 0 of 100 % - 0 of 10 XID 79, cordoned 0",
        "n 0 Tesla T4 quota 1000 of 15360 MiB 303 MiB 14360 MiB 0 of 100 % 12 % 1 of 10 healthy 1",
        "n 1 Tesla T4 idle 0 of 15360 MiB 0 MiB 15360 MiB 0 of 100 % 0 % 0 of 10 healthy 0",
    ]
    assert silent == "No usage data from m: nodes 'm:9394' does not answer"


async def test_wide_adds_uuids_and_the_names_of_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = (await run(monkeypatch, await three_gpus(), "-o", "wide")).output.splitlines()
    assert rows[0].split()[-6:] == ["FREE", "COMPUTE", "FREE", "SLOTS", "UUID", "PODS"]
    assert rows[2].split()[-5:] == ["100", "%", "9", "GPU-n-0", "default/runs"]


async def test_json_has_numbers_and_null_for_what_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    of_m, of_n, _ = await as_json(monkeypatch, await three_gpus())
    assert of_n == {
        "node": "n",
        "gpu": "GPU-n-0",
        "index": 0,
        "model": "Tesla T4",
        "mode": "quota",
        "health": "healthy",
        "cordoned": False,
        "pods": ["default/runs"],
        "memoryMib": 15360,
        "memoryGrantedMib": 1000,
        "memoryFreeMib": 14360,
        "memoryUsedMib": 303,
        "memoryLimitMib": 1000,
        "memoryBorrowedMib": 0,
        "computePercent": 100,
        "computeMeaning": "",
        "computeGrantedPercent": 0,
        "computeFreePercent": 100,
        "busyPercent": 12.4,
        "slots": 10,
        "slotsGranted": 1,
        "slotsFree": 9,
    }
    assert (of_m["memoryUsedMib"], of_m["busyPercent"], of_m["cordoned"]) == (None, None, True)
    assert (of_m["memoryLimitMib"], of_m["memoryBorrowedMib"]) == (0, None)


async def lending() -> FakeKube:
    """Two pods with limits above their requests, one of which borrows, and an ended one."""
    first, second, ended = (pod(name, container(gpu=1, gpumem=4000), node="n") for name in ("a", "b", "ended"))
    ended["status"] = {"phase": "Succeeded"}
    held = [grant(first, "n", 4000, limit_mib=9000), grant(second, "n", 5000, limit_mib=15000)]
    kube = await cluster(inventory("n", 2), first, second, ended, *held, grant(ended, "n", 100, limit_mib=200))
    used = share_lines("n", "a", "GPU-n-0", data=6000, borrowed=2000) + share_lines("n", "b", "GPU-n-0", data=10)
    serve(kube, "n", gpu_lines("n", "GPU-n-0", 6010, 0) + gpu_lines("n", "GPU-n-1", 0, 0) + used)
    return kube


async def test_limits_and_what_is_borrowed_are_shown_where_memory_is_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await lending()
    rows = await as_json(monkeypatch, kube)
    figures = [(row["memoryGrantedMib"], row["memoryLimitMib"], row["memoryBorrowedMib"]) for row in rows]
    assert figures == [(9000, 24000, 2000), (0, 0, 0)]
    head, *lines = (await run(monkeypatch, kube)).output.splitlines()
    assert head.split()[-4:] == ["STATE", "LIMIT", "BORROWED", "PODS"]
    assert [line.split()[-5:] for line in lines] == [
        ["24000", "MiB", "2000", "MiB", "2"],
        ["0", "MiB", "0", "MiB", "0"],
    ]
    assert "BORROWED" not in (await run(monkeypatch, await three_gpus(), "-o", "wide")).output


async def test_what_an_agent_does_not_tell_of_borrowed_memory_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await lending()
    kube.pages.clear()
    [row, _] = await as_json(monkeypatch, kube)
    assert (row["memoryLimitMib"], row["memoryBorrowedMib"]) == (24000, None)


async def test_names_can_be_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    output = (await run(monkeypatch, await three_gpus(), "-o", "name", "--node", "n")).output
    assert output.splitlines() == ["n/GPU-n-0", "n/GPU-n-1"]


async def test_only_the_node_that_is_named_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await three_gpus()
    assert {row["node"] for row in await as_json(monkeypatch, kube, "--node", "m")} == {"m"}
    assert [name for verb, _, name in kube.calls if verb == "proxied"] == ["m:9394"]
    wrong = await run(monkeypatch, kube, "--node", "mm")
    assert (wrong.code, wrong.error) == (2, "no node mm offers GPUs; did you mean m?")


@pytest.mark.parametrize(
    ("order", "first"), [("node", "GPU-m-0"), ("used", "GPU-n-0"), ("granted", "GPU-n-0"), ("free", "GPU-m-0")]
)
async def test_rows_can_be_sorted(order: str, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await as_json(monkeypatch, await three_gpus(), "--sort", order))[0]["gpu"] == first


@pytest.mark.parametrize(("option", "value"), [("--sort", "size"), ("-o", "tree")])
async def test_unknown_values_are_refused(option: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await run(monkeypatch, await three_gpus(), option, value)
    assert ended.code == 2 and "must be one of " in ended.error and f"got '{value}'" in ended.error


async def test_of_gpus_that_kubelet_allocates_nothing_granted_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    native = changed(inventory("n"), 0, native_resource="nvidia.com/gpu")
    [row] = await as_json(monkeypatch, await cluster(native))
    assert row["mode"] == "nvidia.com/gpu"
    assert {row[key] for key in ("memoryGrantedMib", "memoryFreeMib", "memoryLimitMib", "slotsGranted")} == {None}


async def test_of_a_gpu_that_is_held_whole_nothing_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = msgspec.structs.replace(gpu(), mode=Mode.WHOLE)
    runs = pod("runs", container(gpu=1), node="n")
    held = grant(runs, "n", 15000)
    held["spec"]["containers"][0]["shares"][0]["exclusive"] = True
    [row] = await as_json(monkeypatch, await cluster(msgspec.structs.replace(inventory(), gpus=(whole,)), runs, held))
    assert (row["mode"], row["memoryFreeMib"], row["computeFreePercent"], row["slotsFree"]) == ("whole", 0, 0, 0)


async def test_a_cluster_without_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await run(monkeypatch, await cluster())).output == "No node offers a GPU.\n"
    assert await as_json(monkeypatch, await cluster()) == []
