"""A cluster in which every node has some pods: 8 GPUs a node, four pods a node at 20,000 pods on 5,000 nodes."""

import random
from collections.abc import Iterator

from lamina.core.cards import card
from lamina.core.gpus import Gpu, Inventory
from lamina.core.grants import ContainerGrant, Share
from lamina.core.objects import write_spec
from lamina.core.requests import PodRequest
from lamina.ledger.grant_objects import grant_object
from lamina.ports.kube import Object

GPUS = 8
CARD = card("A100-SXM4-80GB")
_REQUEST = PodRequest(dialect="hami", containers=())
_KINDS: tuple[dict[str, int], ...] = (
    *({"gpu": 1, "gpumem": 1000 * size, "gpucores": cores} for size in range(1, 21) for cores in (0, 20)),
    *({"gpu": count, "gpumem": 30_000} for count in (2, 4)),
    *({"gpu": 1, "gpumem-percentage": percent, "gpucores": 25} for percent in (10, 25, 50)),
    {"gpu": 1},
    {"gpu": 2},
)
"""What pods ask: shares of many sizes, several GPUs, percentages, whole GPUs."""


def node_name(number: int) -> str:
    return f"gpu-node-{number:05d}.cluster.example"


def inventory(number: int) -> Inventory:
    gpus = tuple(
        Gpu(
            uuid=f"GPU-{number:08d}-0000-4000-8000-{index:012d}",
            index=index,
            model=CARD.name,
            memory_mib=CARD.memory_mib,
            capacity_mib=CARD.memory_mib,
            numa=index // 4,
        )
        for index in range(GPUS)
    )
    return Inventory(node=node_name(number), driver="550.54.15", gpus=gpus)


def inventories(nodes: int) -> Iterator[Object]:
    for number in range(nodes):
        spec = write_spec(inventory(number))
        yield {"metadata": {"name": node_name(number), "uid": f"i{number}", "resourceVersion": "1"}, "spec": spec}


def hosts(nodes: int) -> Iterator[Object]:
    for number in range(nodes):
        meta = {"name": node_name(number), "uid": f"n{number}", "resourceVersion": "1"}
        yield {"metadata": meta, "status": {"allocatable": {"cpu": "128", "memory": "1024Gi"}}}


def running(nodes: int, pods: int) -> Iterator[tuple[Object, Object]]:
    """Pods that run, each with its grant; the same ones each time."""
    draw = random.Random(5)
    for number in range(pods):
        node = number % nodes
        gpu = inventory(node).gpus[draw.randrange(GPUS)].uuid
        share = Share(gpu=gpu, memory_mib=draw.randrange(1, 17) * 1024, cores=draw.choice((0, 10, 20)))
        made = pod(f"running-{number}", {"gpu": 1, "gpumem": share.memory_mib})
        made["spec"]["nodeName"] = node_name(node)
        made["status"] = {"phase": "Running"}
        grant = grant_object(made, node_name(node), _REQUEST, (ContainerGrant(name="main", shares=(share,)),))
        grant["metadata"] |= {"uid": f"g{number}", "resourceVersion": "1"}
        yield made, grant


def pod(name: str, limits: dict[str, int]) -> Object:
    """A pod about as long as a Deployment's pods are."""
    named = {f"nvidia.com/{key}": str(value) for key, value in limits.items()}
    environment = [{"name": f"SETTING_{index}", "value": "x" * 40} for index in range(12)]
    mounts = [{"name": f"volume-{index}", "mountPath": f"/mnt/{index}"} for index in range(4)]
    container = {
        "name": "main",
        "image": "registry.example/team/trainer:1.4.2",
        "env": environment,
        "volumeMounts": mounts,
        "resources": {"limits": named, "requests": {"cpu": "4", "memory": "16Gi"}},
    }
    meta = {
        "name": name,
        "namespace": "default",
        "uid": f"00000000-0000-4000-8000-{name}",
        "resourceVersion": "1",
        "labels": {"app": "trainer", "pod-template-hash": "7c9d8f6b5"},
    }
    return {
        "metadata": meta,
        "spec": {"schedulerName": "hami-scheduler", "containers": [container]},
        "status": {"phase": "Pending"},
    }


def new_pod(name: str) -> Object:
    """A pod that waits; its name, `new-NUMBER`, says of which kind it is."""
    return pod(name, _KINDS[int(name.rpartition("-")[2]) % len(_KINDS)])


def preferring(pod: Object) -> Object:
    """The pod, which prefers nodes of a zone: kube-scheduler asks for scores, and adds its own."""
    match = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]
    term = {"weight": 1, "preference": {"matchExpressions": match}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    pod["spec"]["affinity"] = {"nodeAffinity": preferred}
    return pod
