"""The objects of a small cluster, and an API server that has them."""

from typing import Any

from lamina.core.gpus import Gpu, Inventory, NativeResource
from lamina.core.grants import ContainerGrant, Share
from lamina.core.objects import write_spec
from lamina.core.requests import PodRequest
from lamina.ledger.grant_objects import grant_object
from lamina.ports.kube import GRANTS, INVENTORIES, NAMESPACES, NODES, PODS, Object
from lamina.ports.kube.fake import FakeKube

T4 = 15360


def gpu(index: int = 0, node: str = "n", memory_mib: int = T4) -> Gpu:
    return Gpu(
        uuid=f"GPU-{node}-{index}", index=index, model="Tesla T4", memory_mib=memory_mib, capacity_mib=memory_mib
    )


def inventory(node: str = "n", gpus: int = 1, **native: int) -> Inventory:
    """`mig_1g_5gb=2` are two devices nvidia.com/mig-1g.5gb that the node offers as native devices."""
    return Inventory(
        node=node,
        driver="550.54.15",
        gpus=tuple(gpu(index, node) for index in range(gpus)),
        native_resources=tuple(NativeResource(resource=resource(name), count=count) for name, count in native.items()),
    )


def resource(key: str) -> str:
    """The resource of a keyword: nvidia.com/mig-1g.5gb for `mig_1g_5gb`."""
    return "nvidia.com/" + key.replace("mig_1g_5gb", "mig-1g.5gb").replace("gpu_shared", "gpu.shared")


def container(name: str = "main", **limits: int) -> Object:
    return {"name": name, "resources": {"limits": {resource(key): str(amount) for key, amount in limits.items()}}}


def pod(
    name: str, *containers: Object, namespace: str = "default", node: str = "", status: Any = None, **spec: Any
) -> Object:
    """`spec` are further fields, such as initContainers."""
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
        "spec": {"containers": list(containers), **({"nodeName": node} if node else {}), **spec},
        "status": {"phase": "Running" if node else "Pending"} | (status or {}),
    }


def cron_job(workload: Object) -> Object:
    """A CronJob with the name and template of `workload`."""
    template = {"spec": {"template": workload["spec"]["template"]}}
    return {"metadata": dict(workload["metadata"]), "spec": {"schedule": "0 3 * * *", "jobTemplate": template}}


def grant(of: Object, node: str, memory_mib: int, uuid: str | None = None, *, limit_mib: int = 0) -> Object:
    """One share of the node's first GPU, or of another."""
    share = Share(gpu=uuid or f"GPU-{node}-0", memory_mib=memory_mib, most_memory_mib=limit_mib)
    request = PodRequest(dialect="hami", containers=())
    return grant_object(of, node, request, (ContainerGrant(name="main", shares=(share,)),))


async def cluster(*objects: Object | Inventory, confirmed: bool = True) -> FakeKube:
    """An API server with these pods, grants and inventories, a node for each inventory, and the namespace `default`.
    The controller has `confirmed` the survivors that inventories list."""
    kube = FakeKube()
    await kube.create(NAMESPACES, {"metadata": {"name": "default"}})
    for obj in objects:
        if isinstance(obj, Inventory):
            await kube.create(NODES, {"metadata": {"name": obj.node}, "status": {"allocatable": {"cpu": "8"}}})
            status = {"survivors": [f"{each.namespace}/{each.pod_uid}" for each in obj.survivors if confirmed]}
            body = {"metadata": {"name": obj.node}, "spec": write_spec(obj), "status": status}
            await kube.create(INVENTORIES, body)
            await kube.patch(INVENTORIES, obj.node, {"status": status}, subresource="status")
        else:
            await kube.create(GRANTS if "podUID" in obj["spec"] else PODS, obj)
    return kube
