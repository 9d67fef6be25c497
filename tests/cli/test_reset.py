"""`lamina reset` against a fake cluster: what it refuses, what it removes, and what it leaves alone."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from lamina import configuration
from lamina.core.gpus import Inventory
from lamina.core.grants import Grant, grant_name
from lamina.core.mps import MpsDaemon, MpsState
from lamina.core.objects import write_spec
from lamina.errors import BadInput, Outside
from lamina.operations.reset import disabled
from lamina.ports.kube import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    GRANTS,
    INVENTORIES,
    LEASES,
    MUTATING_WEBHOOKS,
    NODES,
    PODS,
    NotFound,
    Object,
    Refused,
    Resource,
    Unreachable,
)
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.cli.reset_cluster import half_gone, run
from tests.configuration.odd_yaml import ODD_TEXTS
from tests.distortion import nested


@pytest.fixture
async def kube() -> FakeKube:
    return await half_gone()


ASKS = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000}


async def pod(
    kube: FakeKube,
    name: str,
    *,
    limits: Mapping[str, int] = ASKS,
    granted: bool = False,
    node: str = "dead",
    **status: str,
) -> Object:
    spec = {"nodeName": node, "containers": [{"name": "main", "resources": {"limits": limits}}]}
    made = await kube.create(PODS, {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Running"} | status})
    if granted:
        uid = made["metadata"]["uid"]
        grant = Grant(pod=name, pod_uid=uid, node="dead", dialect="hami", containers=())
        meta = {"name": grant_name(name, uid), "namespace": "default"}
        await kube.create(GRANTS, {"metadata": meta, "spec": write_spec(grant)})
    return made


async def test_s2_10_it_refuses_while_pods_use_gpus_and_names_them(kube: FakeKube) -> None:
    await pod(kube, "asking")
    await pod(kube, "holding", limits={}, granted=True)
    await pod(kube, "finished", phase="Succeeded")
    await pod(kube, "without", limits={})
    await pod(kube, "replica", limits={"nvidia.com/gpu.shared": 1})
    await pod(kube, "slice", limits={"nvidia.com/mig-1g.5gb": 1})
    await pod(kube, "of-others", node="theirs")
    with pytest.raises(BadInput, match="4 pods use GPUs: default/asking, default/holding, default/replica, default/sl"):
        await run(kube)
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAPS, "lamina", namespace="lamina-system")
    assert await kube.get(MUTATING_WEBHOOKS, "lamina.dev")


@pytest.mark.parametrize("granted", [False, True])
async def test_a_pod_that_cannot_be_read_counts_only_with_a_grant(kube: FakeKube, granted: bool) -> None:
    """Anyone may create one, and no node starts it."""
    await pod(kube, "odd", limits={"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-cores": 150}, granted=granted)
    if granted:
        with pytest.raises(BadInput, match="1 pod uses GPUs: default/odd"):
            await run(kube)
    else:
        assert await run(kube)


async def test_s2_10_everything_goes_but_what_is_not_ours(kube: FakeKube) -> None:
    reported = await run(kube)
    assert any("dead" in step and "gone" not in step for step in reported)
    found = await kube.get(CONFIG_MAPS, "lamina", namespace="lamina-system")
    assert configuration.load(found["data"]["lamina.yaml"], "test").enabled is False
    dead = await kube.get(NODES, "dead")
    assert dead["metadata"]["labels"] == {"own": "kept"}
    assert not dead["metadata"].get("annotations")
    assert dead["status"]["capacity"] == {"cpu": "8", "volcano.sh/vgpu-number": "10"}
    assert dead["status"]["allocatable"] == dead["status"]["capacity"]
    with pytest.raises(NotFound):
        await kube.get(MUTATING_WEBHOOKS, "lamina.dev")
    assert len((await kube.list(CUSTOM_RESOURCE_DEFINITIONS)).items) == 2
    assert len(await run(kube)) == len(reported)


async def test_nodes_of_others_keep_what_others_wrote(kube: FakeKube) -> None:
    labels = {"nvidia.com/gpu.deploy.device-plugin": "true", "nvidia.com/gpu.count": "2"}
    capacity = {"nvidia.com/gpu": "0", "volcano.sh/vgpu-number": "10"}
    meta = {"name": "theirs", "labels": labels, "annotations": {"hami.io/node-nvidia-register": "[]"}}
    before = await kube.create(NODES, {"metadata": meta, "status": {"capacity": capacity, "allocatable": capacity}})
    await run(kube)
    assert await kube.get(NODES, "theirs") == before


async def test_s2_10_it_waits_for_daemons_of_mps(kube: FakeKube) -> None:
    daemon = MpsDaemon(gpu="GPU-0", state=MpsState.STOPPING, reason="it is not wanted")
    spec = write_spec(Inventory(node="gone", mps=(daemon,)))
    await kube.patch(INVENTORIES, "gone", {"spec": spec})
    assert "No answer from the agents of dead, gone." in await run(kube)


async def test_s2_10_it_waits_for_what_was_made_of_mig_and_says_what_stays(kube: FakeKube) -> None:
    left = "GPU 0 keeps 1g.5gb at 6: it is in use by process 7"
    spec = write_spec(Inventory(node="gone", mig_leftovers=(left,)))
    await kube.patch(INVENTORIES, "gone", {"spec": spec})
    output = f"Remaining until idle, then removed by the agent of the node: gone: {left}."
    assert output in await run(kube)


async def test_s2_10_all_removes_our_kinds_too(kube: FakeKube) -> None:
    await run(kube, everything=True)
    assert (await kube.list(CUSTOM_RESOURCE_DEFINITIONS)).items == []
    assert [each["metadata"]["name"] for each in (await kube.list(LEASES)).items] == ["another"]
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAPS, "lamina", namespace="lamina-system")


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("", {}),
        ("# mine\nhami: {deviceSplitCount: 4}\n", {"hami": {"deviceSplitCount": 4}}),
        ("enabled: true\nschedulers: {served: [mine]}", {"schedulers": {"served": ["mine"]}}),
        ("{hami: {deviceSplitCount: 4}}", {"hami": {"deviceSplitCount": 4}}),
        ("enabled: false", {}),
        (
            "apiVersion: lamina.dev/v1alpha1\nkind: Configuration\nenabled: true\nsharing: {slots: 4}",
            {"apiVersion": "lamina.dev/v1alpha1", "kind": "Configuration", "sharing": {"slots": 4}},
        ),
    ],
)
def test_the_rest_of_the_configuration_stays(text: str, others: Mapping[str, Any]) -> None:
    changed = disabled(text)
    assert yaml.safe_load(changed) == {**others, "enabled": False}
    assert ("# mine" in text) == ("# mine" in changed)


@pytest.mark.parametrize("text", [*ODD_TEXTS, nested(1200)])
def test_a_configuration_that_is_none_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        disabled(text)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("error", [Unreachable("it does not answer"), Refused("it says no"), NotFound("it is gone")])
async def test_a_server_that_fails_at_any_moment_is_one_sentence(
    error: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repeated until a reset makes no call any more that could fail."""
    for fails_at in itertools.count():
        kube, calls = await half_gone(), itertools.count()

        def fail(resource: Resource, name: str, calls: Iterator[int] = calls, at: int = fails_at) -> Outside | None:
            return error if next(calls) == at else None

        kube.failing |= dict.fromkeys(("get", "list", "create", "patch", "delete"), fail)
        ended = await Commands(monkeypatch, kube).run("reset", "--all", "--patience", "0", "--yes")
        if next(calls) <= fails_at:
            break
        assert ended.error in ("", str(error)) or ended.error.startswith("Lamina is not installed"), fails_at
        assert ended.code == (0 if not ended.error else 2 if "not installed" in ended.error else error.exit_code)
    assert fails_at > 15


@pytest.mark.parametrize("odd", [{}, {"node": "other"}, {"node": "gone", "gpus": 3}, {"node": "gone", "mps": [{}]}])
async def test_an_inventory_that_cannot_be_read_is_named_and_does_not_stop_a_reset(kube: FakeKube, odd: Object) -> None:
    await kube.replace(INVENTORIES, {**await kube.get(INVENTORIES, "gone"), "spec": odd})
    steps = await run(kube)
    assert any(
        step.startswith("Remaining until idle") and "gone: its Inventory cannot be read" in step for step in steps
    )
    assert steps[-1].startswith("You can now remove")
