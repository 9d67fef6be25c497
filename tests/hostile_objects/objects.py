"""Objects of every kind that Lamina reads, which the API server accepts: from plain ones up to its limits.

What is there leaves the node and the namespace of honest pods alone: objects that reserve its GPUs, or change what all
pods may have, would rightly keep honest pods from starting.
"""

import base64
import json
import os
from collections.abc import Iterator
from random import Random
from typing import Any

from lamina.configuration import CONFIG_MAP, CONFIG_MAP_KEY
from lamina.core.component_names import ADMISSION_SECRET, DEFAULT_NAMESPACE, LEADER_LEASE
from lamina.core.definitions import GRANT, INVENTORY, ObjectKind, structural_schema
from lamina.ports.kube import (
    CONFIG_MAPS,
    GRANTS,
    INVENTORIES,
    KUBERNETES_POD_GROUPS,
    LEASES,
    NODES,
    PLUGIN_POD_GROUPS,
    PODS,
    RESOURCE_QUOTAS,
    SECRETS,
    VOLCANO_POD_GROUPS,
    AlreadyExists,
    Kube,
    Object,
    Resource,
)
from tests.hostile_objects import values
from tests.hostile_objects.pods import metadata, pod
from tests.hostile_objects.structures import structure

COUNT, FIRST = "LAMINA_EXAMPLES", "LAMINA_FIRST_SEED"
"""Environment variables: how many seeds a run of the tests tries, and the first of them."""
FIRST_SEED = int(os.environ.get(FIRST, "0"))
SEEDS = range(FIRST_SEED, FIRST_SEED + int(os.environ.get(COUNT, "2")))
MAX_OBJECT = 1_500_000
"""Bytes of the largest object that the API server stores."""
_SCHEMAS = {kind.name: structural_schema(kind.spec) for kind in (INVENTORY, GRANT)}
_NODES = ["odd-0", "odd-1"]
_HARD = ("limits.nvidia.com/gpumem", "limits.nvidia.com/gpucores", "requests.nvidia.com/gpu", "limits.cpu", "pods")
_SECTIONS = ("sharing", "health", "nodes", "nativeDevices", "mig", "admission", "compatibility", "nonsense")


def objects(seed: int, count: int, nodes: list[str]) -> Iterator[tuple[Resource, Object]]:
    """So many objects; pods may be bound to these nodes too."""
    random = Random(seed)
    while count:
        resource, make = random.choice(_MAKERS)
        obj = pod(random, [*_NODES, *nodes]) if make is None else make(random)
        if len(json.dumps(obj, ensure_ascii=False).encode()) <= MAX_OBJECT:
            yield resource, obj
            count -= 1


async def put(kube: Kube, resource: Resource, obj: Object) -> Object:
    """Create the object or put it in the place of the one that has its name."""
    meta = obj["metadata"]
    try:
        return await kube.create(resource, obj)
    except AlreadyExists:
        before = await kube.get(resource, meta["name"], namespace=meta.get("namespace", ""))
        return await kube.replace(resource, before | obj | {"metadata": before["metadata"] | meta})


def node(random: Random, name: str = "") -> Object:
    """A node, named so or like one that has odd objects of other kinds too."""
    amounts = {key: random.choice(values.AMOUNTS) for key in ("cpu", "memory", "nvidia.com/gpu", "example.com/x")}
    status = values.sparse(random, {"capacity": amounts, "allocatable": amounts, "conditions": [], "images": []})
    notes = {"hami.io/device-cordon": values.text(random, 10_000), "hami.io/node-nvidia-register": values.text(random)}
    labels = {"nvidia.com/mig.config": values.name(random), "nvidia.com/gpu.count": "99999999999"}
    meta = values.sparse(random, {"annotations": notes, "labels": labels})
    found = {"name": name or random.choice(_NODES), **meta}
    return {"metadata": found, **values.sparse(random, {"spec": {"taints": []}, "status": status})}


def configuration(random: Random) -> Object:
    """Lamina's ConfigMap, whose text is not a configuration, or one that leaves all as it is."""
    section = random.choice(_SECTIONS)
    texts = (
        values.text(random, 900_000),
        f"{section}:\n",
        f"{section}: []",
        json.dumps({section: {values.text(random): values.text(random)}}),
        json.dumps({"apiVersion": "lamina.dev/v1alpha1", "kind": "Configuration", section: None}),
        "[" * 3000,
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
        "sharing: {slots: 10, slots: 10}",
        "health: {recoverySeconds: 1e308}",
        "health: {recoverySeconds: .nan}",
        "sharing: {lowPriorityPercent: 99999999999999999999999}",
    )
    data = {CONFIG_MAP_KEY: random.choice(texts), values.name(random): values.text(random)}
    full = {"data": values.sparse(random, data), "binaryData": {}, "immutable": False}
    return _named(CONFIG_MAP, DEFAULT_NAMESPACE) | values.sparse(random, full)


def custom(random: Random, kind: ObjectKind, meta: Object) -> Object:
    """An object of one of Lamina's kinds, by the schema that the API server checks."""
    spec = structure(random, _SCHEMAS[kind.name])
    if random.randrange(2):
        spec["node"] = meta["name"] if kind is INVENTORY else random.choice(_NODES)
    return {"metadata": meta, "spec": spec}


def _grant(random: Random) -> Object:
    made = custom(random, GRANT, metadata(random))
    made["spec"]["node"] = random.choice((*_NODES, "odd-" + made["spec"]["node"][:200]))
    return made


def _quota(random: Random) -> Object:
    hard = {random.choice(_HARD): random.choice(values.AMOUNTS) for _ in range(3)}
    spec = values.sparse(random, {"hard": hard, "scopes": []})
    return {"metadata": metadata(random), **values.sparse(random, {"spec": spec, "status": {"hard": hard}})}


def _group(random: Random) -> Object:
    least = random.choice((0, 1, 2, 2147483647, -2147483648))
    spec = {"minMember": least, "minResources": {"nvidia.com/gpu": "9E"}, "scheduleTimeoutSeconds": 2147483647}
    return {"metadata": metadata(random), **values.sparse(random, {"spec": values.sparse(random, spec), "status": {}})}


def _kubernetes_group(random: Random) -> Object:
    policy = random.choice(({"basic": {}}, {"gang": {"minCount": random.choice((1, 2, 2147483647))}}))
    spec = {"schedulingPolicy": policy, "podGroupTemplateRef": {"workload": {"workloadName": "w"}}}
    return {"metadata": metadata(random), **values.sparse(random, {"spec": values.sparse(random, spec)})}


def _lease(random: Random) -> Object:
    """One that no replica holds."""
    times = {"acquireTime": "9999-12-31T23:59:59.999999Z", "renewTime": "0001-01-01T00:00:00.000000Z"}
    spec = {**times, "leaseTransitions": random.choice((0, 2147483647)), "leaseDurationSeconds": 2147483647}
    full = {"spec": values.sparse(random, spec)}
    return _named(LEADER_LEASE, DEFAULT_NAMESPACE) | values.sparse(random, full)


def _secret(random: Random) -> Object:
    encoded = base64.b64encode(values.text(random, 700_000).encode()).decode()
    data = values.sparse(random, dict.fromkeys(("tls.crt", "tls.key", "ca.crt"), encoded))
    return _named(ADMISSION_SECRET, DEFAULT_NAMESPACE) | values.sparse(random, {"data": data})


def _named(name: str, namespace: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}}


_MAKERS: tuple[tuple[Resource, Any], ...] = (
    *((PODS, None),) * 5,
    (NODES, node),
    (INVENTORIES, lambda random: custom(random, INVENTORY, {"name": random.choice(_NODES)})),
    (GRANTS, _grant),
    (CONFIG_MAPS, configuration),
    (RESOURCE_QUOTAS, _quota),
    (KUBERNETES_POD_GROUPS, _kubernetes_group),
    (PLUGIN_POD_GROUPS, _group),
    (VOLCANO_POD_GROUPS, _group),
    (LEASES, _lease),
    (SECRETS, _secret),
)
