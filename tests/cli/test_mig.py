"""S2.9: `lamina mig profiles` prints the table of the post, from the data that placement uses."""

import asyncio

import pytest
from typer.testing import CliRunner

from lamina.cli.main import app
from lamina.core.gpus import ExistingMigInstance, Gpu, Inventory, MigDeviceCount
from lamina.core.mig_cards import MIG_CARDS
from lamina.core.mig_devices import NO_STRATEGY
from lamina.core.objects import write_spec
from lamina.dra.slices import DIGEST
from lamina.errors import BadInput
from lamina.ports.kube import CONFIG_MAPS, EVENTS, INVENTORIES, NODES, RESOURCE_SLICES
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands


def profiles(*arguments: str) -> list[list[str]]:
    result = CliRunner().invoke(app, ["mig", "profiles", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return [line.split() for line in result.output.splitlines()]


def test_an_a100_has_the_profiles_of_the_post() -> None:
    rows = profiles("a100-40gb")[1:]
    found = {row[1]: (row[3], row[5], row[7]) for row in rows if "+" not in row[1] and row[1] != "1g.10gb"}
    assert found == {
        "1g.5gb": ("4864", "1/7", "7"), "2g.10gb": ("9856", "2/7", "3"), "3g.20gb": ("19968", "3/7", "2"),
        "4g.20gb": ("19968", "4/7", "1"), "7g.40gb": ("40192", "7/7", "1"),
    }  # fmt: skip
    assert rows[-2][-1] == "0:4" and rows[0][-1] == "0,1,2,3,4,5,6:1"


@pytest.mark.parametrize(
    ("card", "architecture", "capability", "gigabytes", "most"),
    [
        ("H100-80GB", "Hopper", "9.0", 80, 7),
        ("H100-94GB", "Hopper", "9.0", 94, 7),
        ("H100-96GB", "Hopper", "9.0", 96, 7),
        ("A100-40GB", "Ampere", "8.0", 40, 7),
        ("A100-80GB", "Ampere", "8.0", 80, 7),
        ("A30-24GB", "Ampere", "8.0", 24, 4),
    ],
)
def test_wide_has_the_columns_of_the_posts_table(
    card: str, architecture: str, capability: str, gigabytes: int, most: int
) -> None:
    head, first, *_ = profiles(card, "-o", "wide")
    assert head[-4:] == ["ARCHITECTURE", "CAPABILITY", "CARD", "MEMORY"]
    assert first[-4:] == [architecture, capability, str(gigabytes), "GB"] and first[-6] == str(most)


def test_the_memory_of_each_profile_of_the_posts_cards_is_known() -> None:
    rows = [row for card in ("H100", "A100", "A30") for row in profiles(card)[1:]]
    assert rows and all(row[4] == "MiB" for row in rows)


def test_every_card_is_there() -> None:
    rows = profiles()[1:]
    assert [(row[0], row[1]) for row in rows] == [(c.model, p.name) for c in MIG_CARDS.values() for p in c.profiles]


@pytest.mark.parametrize("name", ["A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"])
def test_a_card_is_found_by_the_names_of_its_driver(name: str) -> None:
    assert {row[0] for row in profiles(name)[1:]} == {"A100-40GB"}


def node(name: str, model: str = "NVIDIA A100-SXM4-40GB") -> dict[str, object]:
    """An inventory of a node with one GPU."""
    gpu = Gpu(uuid="GPU-0", index=0, model=model, memory_mib=40960, capacity_mib=40960, mig_capable=True)
    return {"metadata": {"name": name}, "spec": write_spec(Inventory(node=name, gpus=(gpu,) if model else ()))}


FILE = """
version: v1
mig-configs:
  ours: [{devices: all, mig-enabled: false}]
"""


@pytest.mark.parametrize(
    ("model", "name", "refusal"),
    [
        ("NVIDIA A100-SXM4-40GB", "all-1g.5gb", ""),
        ("NVIDIA A100-SXM4-40GB", "all-balanced", ""),
        ("NVIDIA A100-SXM4-40GB", "ours", ""),
        ("NVIDIA A100-SXM4-40GB", "all-1g.5gbb", "have no MIG configuration all-1g.5gbb; did you mean all-1g.5gb?"),
        ("NVIDIA A100-SXM4-40GB", "x", "x; it must be one of all-1g.10gb, all-1g.5gb, all-1g.5gb.me, all-2g.10gb"),
        ("Tesla T4", "all-1g.5gb", "have no MIG configuration all-1g.5gb"),
        ("", "all-1g.5gb", ""),
        ("", "all-1g.5gbb", "did you mean all-1g.5gb?"),
        ("a card of next year", "all-1g.99gb", ""),
    ],
)
async def test_a_configuration_that_the_node_cannot_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, model: str, name: str, refusal: str
) -> None:
    kube = FakeKube()
    await kube.create(NODES, {"metadata": {"name": "n"}})
    await kube.create(INVENTORIES, node("n", model))
    meta = {"name": "mig-parted-config", "namespace": "lamina-system"}
    await kube.create(CONFIG_MAPS, {"metadata": meta, "data": {"config.yaml": FILE}})
    ended = await Commands(monkeypatch, kube).run("mig", "apply", "n", name)
    assert (ended.code, refusal in ended.error) == (2 if refusal else 0, True)
    labels = (await kube.get(NODES, "n"))["metadata"].get("labels") or {}
    assert labels.get("nvidia.com/mig.config") == (None if refusal else name)


async def test_the_list_says_why_a_configuration_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = FakeKube()
    for name, state in (("a", "failed"), ("b", "success")):
        labels = {"nvidia.com/mig.config": "all-1g.5gb", "nvidia.com/mig.config.state": state}
        await kube.create(NODES, {"metadata": {"name": name, "labels": labels}})
        for number, reason in ((2, "MigNotApplied"), (1, "MigNotApplied"), (3, "Other")):
            event = {"involvedObject": {"name": name}, "reason": reason, "message": f"failure {number}"}
            meta = {"name": f"{name}.{number}", "namespace": "default"}
            await kube.create(EVENTS, {"metadata": meta, "lastTimestamp": f"2026-01-0{number}T00:00:00Z", **event})
    ended = await Commands(monkeypatch, kube).run("mig", "list")
    assert ended.rows[3:] == [["a", "failed:", "failure", "2"]]


def test_a_card_without_mig_is_refused_with_those_that_have_it() -> None:
    with pytest.raises(BadInput, match="A100-40GB, A100-80GB"):
        profiles("V100")


async def test_nodes_are_asked_and_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = FakeKube()
    await kube.create(NODES, {"metadata": {"name": "plain"}})
    amounts = {"nvidia.com/mig-3g.20gb": "4", "nvidia.com/mig-1g.5gb": "0", "nvidia.com/gpu": "0"}
    await kube.create(NODES, {"metadata": {"name": "cut"}, "status": {"allocatable": amounts}})

    instances = (
        ExistingMigInstance(profile="1g.5gb", start=6, made=True),
        ExistingMigInstance(profile="2g.10gb", start=0),
    )
    gpu = Gpu(uuid="GPU-0", index=3, model="A100", memory_mib=40960, capacity_mib=40960, instances=instances)
    spec = write_spec(Inventory(node="plain", gpus=(gpu,)))
    await kube.create(INVENTORIES, {"metadata": {"name": "plain"}, "spec": spec})

    async def connect(*_: object, **__: object) -> FakeKube:
        return kube

    monkeypatch.setattr("lamina.ports.kube.client.connect", connect)
    answer = await asyncio.to_thread(CliRunner().invoke, app, ["mig", "apply", "cut", "all-3g.20gb"])
    assert "Requested all-3g.20gb for node cut" in answer.output
    listed = await asyncio.to_thread(CliRunner().invoke, app, ["mig", "list"])
    assert [line.split() for line in listed.output.splitlines()[1:]] == [
        ["plain", *["1g.5gb", "at", "6", "of", "GPU", "3,", "2g.10gb", "at", "0", "of", "GPU", "3"]],
        ["cut", "all-3g.20gb", "pending", "4", "3g.20gb"],
    ]
    missing = await asyncio.to_thread(CliRunner().invoke, app, ["mig", "apply", "missing", "all-1g.5gb"])
    assert isinstance(missing.exception, BadInput) and "there is no node missing" in str(missing.exception)


@pytest.mark.parametrize("node", ["n", "other"])
async def test_devices_that_are_offered_to_claims_alone_are_not_missed(
    node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube = FakeKube()
    devices = (MigDeviceCount(profile="1g.5gb", count=7, reason=NO_STRATEGY),)
    await kube.create(
        INVENTORIES, {"metadata": {"name": "n"}, "spec": write_spec(Inventory(node="n", mig_devices=devices))}
    )
    await kube.create(NODES, {"metadata": {"name": "n"}})
    offered = [{"name": "gpu-0-mig", "attributes": {"profile": {"string": "1g.5gb"}}}]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.nvidia.com", "nodeName": node, "pool": pool, "devices": offered}
    await kube.create(RESOURCE_SLICES, {"metadata": {"name": "s", "annotations": {DIGEST: "x"}}, "spec": spec})
    lines = (await Commands(monkeypatch, kube).run("mig", "list")).output.splitlines()[1:]
    assert lines[0].endswith("7 1g.5gb (for claims)" if node == "n" else "7 1g.5gb (not offered)")
    assert len(lines) == (1 if node == "n" else 2)


async def test_devices_that_are_not_offered_are_listed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = FakeKube()
    devices = (
        MigDeviceCount(profile="1g.5gb", count=28, reason=NO_STRATEGY),
        MigDeviceCount(profile="2g.10gb", count=3, resource="nvidia.com/gpu"),
        MigDeviceCount(profile="3g.20gb", count=1, resource="nvidia.com/mig-3g.20gb"),
    )
    spec = write_spec(Inventory(node="n", mig_devices=devices))
    await kube.create(INVENTORIES, {"metadata": {"name": "n"}, "spec": spec})
    await kube.create(NODES, {"metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/mig-3g.20gb": "1"}}})
    ended = await Commands(monkeypatch, kube).run("mig", "list")
    first, second = ended.output.splitlines()[1:]
    assert first.endswith("1 3g.20gb, 28 1g.5gb (not offered), 3 2g.10gb as nvidia.com/gpu")
    assert second == (
        "n does not offer all of its MIG devices: the MIG strategy is none; set it to mixed (hami.migStrategy, or "
        "mig.strategy in Lamina's own form)"
    )
