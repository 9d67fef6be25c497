"""A pod and its grants, from which compatibility annotations are written."""

from lamina.core.gpus import Gpu, Inventory, MigInstance, Mode
from lamina.core.grants import ContainerGrant, Grant, Share
from lamina.ports.kube import Object

POD: Object = {"spec": {"initContainers": [{"name": "early"}], "containers": [{"name": "plain"}, {"name": "main"}]}}


def grant(dialect: str) -> Grant:
    def share(gpu: str, memory: int, cores: int) -> Share:
        return Share(gpu=gpu, memory_mib=memory, cores=cores)

    return Grant(
        pod="p",
        pod_uid="uid",
        node="node-1",
        dialect=dialect,
        containers=(
            ContainerGrant(name="early", shares=(share("GPU-a", 100, 0),), init=True),
            ContainerGrant(name="main", shares=(share("GPU-a", 3000, 30), share("GPU-b", 3000, 30))),
        ),
    )


def partitioned(dialect: str) -> tuple[Grant, Inventory]:
    """A pod whose second container has an instance."""
    share = Share(gpu="GPU-a", memory_mib=9856, cores=28, mode=Mode.MIG, mig=MigInstance(profile="2g.10gb", start=4))
    of = ContainerGrant(name="main", shares=(share,), because="mig, 2g.10gb at slice 4: the node prefers this mode")
    gpu = Gpu(uuid="GPU-a", index=0, model="A100", memory_mib=40960, capacity_mib=40960, mig_card="A100-40GB")
    inventory = Inventory(node="node-1", gpus=(gpu,))
    return Grant(pod="p", pod_uid="uid", node="node-1", dialect=dialect, containers=(of,)), inventory
