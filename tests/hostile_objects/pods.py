"""Pods that the API server accepts, with the resource names and annotations of every dialect."""

from random import Random
from typing import Any

from lamina.dialects.groups import GROUP_ANNOTATION, GROUP_LABEL
from lamina.dialects.hami.fractions import PERCENTAGE
from lamina.dialects.hami.parser import COUNTS_GPUS
from lamina.ports.kube import Object
from tests.hostile_objects import values

_RESOURCES = (
    *("nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores"),
    *("nvidia.com/priority", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-9g.900gb"),
    *("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage"),
    *("volcano.sh/vgpu-cores", "volcano.sh/gpu-num", "volcano.sh/gpu-mem.128Mi", "volcano.sh/gpu-core.percentage"),
    *(
        "volcano.sh/gpu-memory",
        "lamina.dev/gpu-shares",
        "aliyun.com/gpu-mem",
        "tencent.com/vcuda-core",
        "example.com/thing",
    ),
)
_ANNOTATIONS = (
    *("nvidia.com/use-gputype", "nvidia.com/nouse-gputype", "nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"),
    *("nvidia.com/vgpu-mode", "nvidia.com/numa-bind", "hami.io/node-scheduler-policy", "hami.io/gpu-scheduler-policy"),
    *("hami.io/device-scoring-weights", "hami.io/vgpu-devices-to-allocate", "hami.io/vgpu-mig-allocations"),
    *("volcano.sh/vgpu-mode", "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/bind-time", GROUP_ANNOTATION, PERCENTAGE),
    *("gpu-fraction", "gpu-memory", "gpu-fraction-num-devices", "gpu-fraction-container-name", "mps"),
    *("nvidia.com/container.c0-1.gpu-memory.limit", "nvidia.com/container.", "kai.scheduler/gpu-compute-sharing-mode"),
    *(COUNTS_GPUS, "example.com/note"),
)
_SCHEDULERS = ("default-scheduler", "hami-scheduler", "volcano", "kai-scheduler", "theirs")
NAMESPACE = "tenant"


def pod(random: Random, nodes: list[str]) -> Object:
    """A pod of a tenant: pending, or bound to one of these nodes, where it may run or have ended."""
    node = random.choice(("", *nodes))
    spec = values.sparse(
        random,
        {
            "containers": _containers(random, at_least=1),
            "initContainers": _containers(random, at_least=0),
            "schedulerName": random.choice(_SCHEDULERS),
            "priority": random.choice((0, -2147483648, 2000001000)),
            "overhead": {"cpu": random.choice(values.AMOUNTS), "memory": random.choice(values.AMOUNTS)},
            "runtimeClassName": values.name(random),
            "tolerations": [{"operator": "Exists"}] * random.choice((0, 1, 5000)),
        },
        "containers",
    )
    if node:
        spec["nodeName"] = node
    return {"metadata": metadata(random), "spec": spec, "status": _status(random, spec) if node else {}}


def metadata(random: Random) -> Object:
    annotations = {random.choice(_ANNOTATIONS): values.text(random) for _ in range(random.choice((0, 1, 3, 12)))}
    if not random.randrange(10):
        annotations["example.com/long"] = values.text(random, 50_000)
    if not random.randrange(10):
        annotations |= {f"example.com/n{number}": "" for number in range(2000)}
    labels = {GROUP_LABEL: values.name(random)} if not random.randrange(4) else {}
    full = {
        "name": values.name(random, 253),
        "namespace": NAMESPACE,
        "annotations": annotations,
        "labels": labels,
        "ownerReferences": [],
    }
    return values.sparse(random, full, "name", "namespace")


def _containers(random: Random, *, at_least: int) -> list[Object]:
    count = random.choice((at_least, 1, 1, 2, 3, *([300] if not random.randrange(6) else [])))
    return [_container(random, f"c{number}-{at_least}") for number in range(count)]


def _container(random: Random, name: str) -> Object:
    full: dict[str, Any] = {
        "name": name,
        "image": values.text(random),
        "resources": _resources(random),
        "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": values.text(random)}, {"name": "A", "valueFrom": {}}],
        "securityContext": {"privileged": random.choice((True, False, None))},
        "restartPolicy": "Always",
    }
    if not random.randrange(60):
        full["args"] = [values.text(random, 1_000_000)]
    return values.sparse(random, full, "name")


def _resources(random: Random) -> Object:
    """Extended resources are whole, and requests equal limits."""
    extended = {random.choice(_RESOURCES): random.choice(values.COUNTS) for _ in range(random.choice((0, 1, 2, 4)))}
    if not random.randrange(30):
        extended |= {f"example.com/r{number}": "1" for number in range(1200)}
    host = {"cpu": random.choice(values.AMOUNTS), "memory": random.choice(values.AMOUNTS)}
    limits = extended | (host if random.randrange(2) else {})
    return values.sparse(random, {"limits": limits, "requests": {**limits, **host}, "claims": []})


def _status(random: Random, spec: Object) -> Object:
    state = random.choice(({"running": {}}, {"running": {"startedAt": None}}, {"waiting": {}}, {"terminated": {}}, {}))
    statuses = [
        values.sparse(random, {"name": each["name"], "state": state, "containerID": values.text(random)}, "name")
        for each in spec["containers"]
    ]
    phase = random.choice(("Pending", "Running", "Succeeded", "Failed", "Unknown"))
    return values.sparse(random, {"phase": phase, "containerStatuses": statuses, "initContainerStatuses": []})
