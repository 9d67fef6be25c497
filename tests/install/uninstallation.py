"""An installation in an API server in memory, and its removal."""

from lamina import configuration
from lamina.admission.webhook_configuration import webhook_configuration
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.core.gpus import Gpu, Inventory
from lamina.core.objects import write_spec
from lamina.install import values as install_values
from lamina.install.chart import definitions, namespace_object, objects
from lamina.install.cleaner import CLEANER
from lamina.operations.uninstall import Uninstall
from lamina.ports.kube import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
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
                meta = {"name": "cleaner-0", "namespace": self.lamina_namespace, "labels": labels}
                await super().create(PODS, {"metadata": meta, "spec": {"nodeName": "dead", "containers": []}})
        return await super().create(resource, obj, namespace=namespace)

    async def delete(
        self, resource: Resource, name: str, *, namespace: str = "", uid: str = "", grace_s: int | None = None
    ) -> None:
        await super().delete(resource, name, namespace=namespace, uid=uid, grace_s=grace_s)
        if resource == DAEMON_SETS and name == CLEANER:
            await super().delete(PODS, "cleaner-0", namespace=self.lamina_namespace)
        for kind, inside, each in keys(self):
            in_namespace = resource == NAMESPACES and inside == name
            if in_namespace or (resource == CUSTOM_RESOURCE_DEFINITIONS and name == f"{kind.plural}.{kind.group}"):
                await super().delete(kind, each, namespace=inside)


async def installed(namespace: str = DEFAULT_NAMESPACE) -> InstalledKube:
    kube = InstalledKube()
    kube.lamina_namespace = namespace
    values = install_values.plain(install_values.read([], VALUES))
    for document in (namespace_object(namespace), *definitions(), *objects(values, (1, 36, 0), namespace=namespace)):
        await kube.create(resource_of(document), document)
    asked = webhook_configuration(configuration.DEFAULT, {"url": "https://x"}, b"ca", namespace=DEFAULT_NAMESPACE)
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
