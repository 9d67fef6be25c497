"""`lamina uninstall` against a fake cluster: all of an installation goes, whatever of it is dead or missing already."""

import json

import pytest
from msgspec import structs

from lamina.core.definitions import custom_resource_definitions
from lamina.core.gpus import ExistingMigInstance, Inventory
from lamina.core.mps import MpsDaemon, MpsState
from lamina.core.objects import write_spec
from lamina.errors import BadInput
from lamina.install.cleaner import CLEANER
from lamina.ports.kube import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    INVENTORIES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    PODS,
    Object,
    Resource,
)
from tests.install.uninstallation import GPU, InstalledKube, installed, keys, ours, uninstall


async def test_nothing_of_an_installation_is_left() -> None:
    kube = await installed()
    _, left = await uninstall(kube)
    assert left == []
    assert ours(kube) == []
    for node in (await kube.list(NODES)).items:
        assert node["metadata"]["labels"] == {"own": "kept"}
        assert node["status"]["capacity"] == {"cpu": "8"}


async def test_what_others_made_for_lamina_stays() -> None:
    kube = await installed()
    theirs = {"app.kubernetes.io/part-of": "lamina", "app.kubernetes.io/name": "gpu-viewers"}
    for resource in (CLUSTER_ROLES, CUSTOM_RESOURCE_DEFINITIONS):
        name = "views.example.com"
        await kube.create(resource, {"metadata": {"name": name, "labels": theirs}})
    _, left = await uninstall(kube)
    assert left == []
    for resource in (CLUSTER_ROLES, CUSTOM_RESOURCE_DEFINITIONS):
        assert await kube.get(resource, "views.example.com")


async def test_nodes_of_pools_are_cleaned_by_daemon_sets_of_their_own() -> None:
    kube = await installed()
    reported, _ = await uninstall(kube)
    assert {CLEANER, f"{CLEANER}-arm64"} < {*kube.daemon_sets}
    assert "Removed the agents and their files on nodes." in reported
    assert not (await kube.list(DAEMON_SETS)).items


async def test_a_node_that_is_no_longer_selected_is_cleaned_too() -> None:
    kube = await installed()
    await kube.patch(NODES, "gone", {"metadata": {"labels": {"lamina.dev/agent": "false"}}})
    made: list[Object] = []
    keep = kube.create

    async def note(resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        made.extend([obj] if obj["metadata"]["name"] == CLEANER else [])
        return await keep(resource, obj, namespace=namespace)

    kube.create = note  # type: ignore[method-assign]
    _, left = await uninstall(kube)
    assert left == []
    (cleaner,) = made
    assert '"values": ["gone"]' in json.dumps(cleaner)
    assert (await kube.get(NODES, "gone"))["status"]["capacity"] == {"cpu": "8"}


async def test_gpu_state_that_agents_did_not_restore_is_named() -> None:
    kube = await installed()
    busy = "GPU 0 keeps 1g.5gb at 6: it is in use by process 7"
    partitioned = structs.replace(GPU, instances=(ExistingMigInstance(profile="1g.5gb", start=5, made=True),))
    daemon = MpsDaemon(gpu="GPU-0", state=MpsState.READY, memory_mib=7680, threads_percent=50)
    for name, found in (
        ("gone", Inventory(node="gone", mig_leftovers=(busy,))),
        ("dead", Inventory(node="dead", gpus=(partitioned,), mps=(daemon,))),
    ):
        await kube.patch(INVENTORIES, name, {"spec": write_spec(found)})
    reported, left = await uninstall(kube)
    assert set(left) == {
        f"on node gone: {busy}",
        "on node dead: GPU 0 has the MIG instance 1g.5gb at 5",
        "on node dead: GPU-0 is shared by MPS",
    }
    assert not any("until idle" in step for step in reported)


async def test_the_webhook_goes_before_who_would_answer_it_and_kinds_after_who_uses_them() -> None:
    kube = await installed()
    kube.calls.clear()
    await uninstall(kube)
    deleted = [(resource, name) for verb, resource, name in kube.calls if verb == "delete"]
    order = [
        deleted.index((MUTATING_WEBHOOKS, "lamina.dev")),
        deleted.index((DEPLOYMENTS, "lamina-controller")),
        deleted.index((DAEMON_SETS, "lamina-agent")),
        deleted.index((CUSTOM_RESOURCE_DEFINITIONS, "grants.lamina.dev")),
        deleted.index((NAMESPACES, "lamina-system")),
    ]
    assert order == sorted(order)


@pytest.mark.parametrize("missing", ["Deployment", "CustomResourceDefinition", "ConfigMap", "Namespace", "DaemonSet"])
async def test_what_is_missing_already_stops_nothing(missing: str) -> None:
    kube = await installed()
    for kind, inside, name in keys(kube):
        if kind.kind == missing:
            await kube.delete(kind, name, namespace=inside)
    _, left = await uninstall(kube)
    assert left == []
    assert ours(kube) == []
    assert (await uninstall(kube))[1] == []


async def test_a_configuration_that_is_not_valid_stops_nothing() -> None:
    kube = await installed()
    await kube.patch(CONFIG_MAPS, "lamina", {"data": {"lamina.yaml": "nonsense: 1"}}, namespace="lamina-system")
    busy = Inventory(node="gone", mig_leftovers=("GPU 0 keeps 1g.5gb at 6",))
    await kube.patch(INVENTORIES, "gone", {"spec": write_spec(busy)})
    assert (await uninstall(kube, kubelets=False))[1] == ["on node gone: GPU 0 keeps 1g.5gb at 6"]
    assert ours(kube) == []
    assert [each["metadata"]["labels"] for each in (await kube.list(NODES)).items] == [{"own": "kept"}] * 2


async def test_agents_that_miss_the_end_leave_no_labels() -> None:
    """No one hears of an end by a configuration that is missing with its kinds; agents go on until they are gone."""
    kube = await installed()
    for definition in custom_resource_definitions():
        await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, definition["metadata"]["name"])
    assert (await uninstall(kube, kubelets=False))[1] == []
    assert [each["metadata"]["labels"] for each in (await kube.list(NODES)).items] == [{"own": "kept"}] * 2


async def test_pods_with_gpus_stop_it_unless_it_is_forced() -> None:
    kube = await installed()
    limits = {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 1000}
    spec = {"nodeName": "dead", "containers": [{"name": "main", "resources": {"limits": limits}}]}
    await kube.create(PODS, {"metadata": {"name": "train"}, "spec": spec, "status": {"phase": "Running"}})
    before = keys(kube)
    with pytest.raises(BadInput, match=r"1 pod uses GPUs: default/train; .* or use --force"):
        await uninstall(kube)
    assert keys(kube) == before
    _, left = await uninstall(kube, force=True)
    assert left == []
    assert [name for _, _, name in ours(kube)] == ["train"]


async def test_a_node_that_could_not_be_cleaned_is_named() -> None:
    kube = await installed()
    kube.ready = False
    reported, left = await uninstall(kube)
    assert "Not cleaned: dead; run `lamina clean-node` on them." in reported
    assert left == ["files of the agent on node dead"]
    assert ours(kube) == []


async def test_resources_that_kubelets_still_count_are_reported() -> None:
    kube = await installed()
    await kube.patch(NODES, "gone", {"status": {"capacity": {"volcano.sh/vgpu-number": "10"}}}, subresource="status")
    _, left = await uninstall(kube, kubelets=False)
    assert left == ["volcano.sh/vgpu-number: 10 on node gone"]


async def test_a_cluster_without_any_of_it_has_nothing_to_lose() -> None:
    kube = InstalledKube()
    await kube.create(NODES, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1", "nvidia.com/gpu": "8"}}})
    assert (await uninstall(kube))[1] == []
    (node,) = (await kube.list(NODES)).items
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "8"


async def test_kinds_are_those_of_the_code() -> None:
    kube = await installed()
    assert {name for kind, _, name in ours(kube) if kind == CUSTOM_RESOURCE_DEFINITIONS} == {
        each["metadata"]["name"] for each in custom_resource_definitions()
    }
