"""`lamina uninstall` against a fake cluster: all of an installation goes, whatever of it is dead or missing already."""

import json

import pytest
from msgspec import structs

from lamina import configuration
from lamina.admission.webhook_configuration import webhook_configuration
from lamina.core.definitions import custom_resource_definitions
from lamina.core.gpus import ExistingMigInstance, Gpu, Inventory
from lamina.core.mps import MpsDaemon, MpsState
from lamina.core.objects import write_spec
from lamina.errors import BadInput
from lamina.install import values as install_values
from lamina.install.chart import definitions, namespace, objects
from lamina.install.cleaner import CLEANER
from lamina.operations.uninstall import Uninstall
from lamina.ports.kube import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    GRANTS,
    INVENTORIES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NODES,
    PODS,
    Listing,
    Object,
    Resource,
)
from lamina.ports.kube.fake import FakeKube
from tests.worlds.clocks import JumpingClock

GPU = Gpu(uuid="GPU-0", index=0, model="Tesla T4", memory_mib=15360, capacity_mib=15360)
VALUES = ["agent.nvidiaNamespace=gpu-operator", "serviceMonitor.enabled=true", "agent.mig=true"]
VALUES += ["agent.pools=[{name: arm64, driverDir: /usr/lib/aarch64-linux-gnu}]"]


_OF_THE_CLUSTER = (
    *("Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
)


def resource_of(document: Object) -> Resource:
    """The kind of what is installed, as `lamina.ports.kube` has kinds."""
    group, _, version = document["apiVersion"].rpartition("/")
    kind = document["kind"]
    plural = kind.lower()[:-1] + "ies" if kind.endswith("y") else kind.lower() + "s"
    return Resource(group, version, plural, kind, kind not in _OF_THE_CLUSTER)


class InstalledKube(FakeKube):
    """With what goes when a namespace or a kind goes, and a DaemonSet controller whose pods are `ready` or not."""

    ready = True

    def __init__(self) -> None:
        super().__init__()
        self.daemon_sets: list[str] = []

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "") -> Listing:
        if resource in (GRANTS, INVENTORIES):
            await self.get(CUSTOM_RESOURCE_DEFINITIONS, f"{resource.plural}.{resource.group}")
        return await super().list(resource, namespace=namespace, labels=labels, fields=fields)

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        if resource == DAEMON_SETS:
            obj = obj | {
                "status": {"observedGeneration": 1, "desiredNumberScheduled": 2, "numberReady": 2 * self.ready}
            }
            self.daemon_sets.append(obj["metadata"]["name"])
            if obj["metadata"]["name"] == CLEANER:
                labels = obj["spec"]["template"]["metadata"]["labels"]
                meta = {"name": "cleaner-0", "namespace": "lamina-system", "labels": labels}
                await super().create(PODS, {"metadata": meta, "spec": {"nodeName": "dead", "containers": []}})
        return await super().create(resource, obj, namespace=namespace)

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", uid: str = "", grace_s: int | None = None
    ) -> None:
        await super().delete(resource, name, namespace=namespace, uid=uid, grace_s=grace_s)
        if resource == DAEMON_SETS and name == CLEANER:
            await super().delete(PODS, "cleaner-0", namespace="lamina-system")
        for kind, inside, each in keys(self):
            in_namespace = resource == NAMESPACES and inside == name
            if in_namespace or (resource == CUSTOM_RESOURCE_DEFINITIONS and name == f"{kind.plural}.{kind.group}"):
                await super().delete(kind, each, namespace=inside)


async def installed() -> InstalledKube:
    kube = InstalledKube()
    values = install_values.plain(install_values.read([], VALUES))
    for document in (namespace(), *definitions(), *objects(values, (1, 36, 0))):
        await kube.create(resource_of(document), document)
    asked = webhook_configuration(configuration.DEFAULT, {"url": "https://x"}, b"ca")
    await kube.patch(MUTATING_WEBHOOKS, "lamina.dev", {"webhooks": asked["webhooks"]})
    for name, gpus in (("gone", ()), ("dead", (GPU,))):
        spec = write_spec(Inventory(node=name, gpus=gpus))
        await kube.create(INVENTORIES, {"metadata": {"name": name}, "spec": spec})
        capacity = {"cpu": "8", "nvidia.com/gpu": "0", "volcano.sh/vgpu-number": "0", "volcano.sh/vgpu-cores": "100"}
        status = {"capacity": capacity, "allocatable": dict(capacity)}
        labels = {"own": "kept", "nvidia.com/gpu.count": "1"}
        await kube.create(NODES, {"metadata": {"name": name, "labels": labels}, "status": status})
    return kube


async def uninstall(kube: FakeKube, *, force: bool = False, kubelets: bool = True) -> tuple[list[str], list[str]]:
    """What it says, and what it finds left."""
    uninstalling = Uninstall(kube, JumpingClock(), patience_s=3)
    reported = [step async for step in uninstalling.run(force=force, kubelets=kubelets)]
    return reported, await uninstalling.left()


def keys(kube: FakeKube) -> list[tuple[Resource, str, str]]:
    """Kind, namespace and name of every object."""
    metas = ((resource, obj["metadata"]) for resource, obj in kube.stored())
    return [(resource, meta.get("namespace", ""), meta["name"]) for resource, meta in metas]


def ours(kube: FakeKube) -> list[tuple[Resource, str, str]]:
    """Everything but nodes, which are not ours."""
    return [key for key in keys(kube) if key[0] != NODES]


async def test_nothing_of_an_installation_is_left() -> None:
    kube = await installed()
    _, left = await uninstall(kube)
    assert left == []
    assert ours(kube) == []
    for node in (await kube.list(NODES)).items:
        assert node["metadata"]["labels"] == {"own": "kept"}
        assert node["status"]["capacity"] == {"cpu": "8"}


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
