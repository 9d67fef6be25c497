"""Cluster dumps as `kubectl get nodes,pods -o json` writes them; Inventory objects in them are read too."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lamina.configuration import Config
from lamina.configuration.yaml_documents import load_documents
from lamina.core.cards import card
from lamina.core.gpus import Gpu, cordoned
from lamina.core.objects import read_inventory
from lamina.core.pod_status import is_over
from lamina.core.quantities import parse_quantity
from lamina.dialects import check_pod, parse, registry
from lamina.errors import BadInput
from lamina.ports.kube import Object
from lamina.ports.user_files import read_bytes
from lamina.report.pod_templates import templates_of
from lamina.simulation.workload import SimNode, SimPod

_MIB = 1 << 20
MIG_DEVICES = "nvidia.com/mig-"
"""How names of resources begin that are MIG devices of a profile."""
_MAX_REPLICAS = 100_000
"""Of one workload: more than any cluster has."""


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""
    creationTimestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Status(msgspec.Struct):
    phase: str | None = None
    allocatable: dict[str, Any] | None = None
    capacity: dict[str, Any] | None = None


class _Shape(msgspec.Struct):
    """What every object has."""

    kind: str
    metadata: _Metadata
    spec: dict[str, Any] = {}
    status: _Status | None = None


class DumpText(NamedTuple):
    """A dump, and how messages call it."""

    text: bytes
    name: str
    is_json: bool

    @classmethod
    def of_file(cls, path: Path) -> "DumpText":
        """Raises BadInput where the file cannot be read."""
        return cls(read_bytes(path), str(path), path.suffix == ".json")


def nodes(dump: DumpText) -> list[SimNode]:
    """The nodes of the dump. Raises BadInput."""
    found = list(_objects(dump))
    inventories = {each["metadata"]["name"]: read_inventory(each) for each in found if each.get("kind") == "Inventory"}
    return [
        SimNode(
            name=node["metadata"]["name"],
            cpu=_amount(_offered(node), "cpu", 1000),
            memory_mib=_amount(_offered(node), "memory", Fraction(1, _MIB)),
            gpus=inventories[name].gpus if (name := node["metadata"]["name"]) in inventories else gpus_of(node),
        )
        for node in found
        if node.get("kind") == "Node"
    ]


def pods(dump: DumpText, config: Config) -> list[SimPod]:
    """The pods of the dump that have not ended, the oldest first. Raises BadInput as admission does.

    A file without pods may be a manifest: then its workloads count with the pods that they make.
    """
    found = list(_objects(dump))
    made = [_pod(each, config) for each in found if each.get("kind") == "Pod"]
    if not made:
        made = [_pod(each, config) for each in _of_workloads(dump, found)]
    return sorted((pod for pod in made if pod is not None), key=lambda pod: pod.created)


def _of_workloads(dump: DumpText, found: list[Object]) -> Iterator[Object]:
    for template in templates_of(found, dump.name, "default"):
        name = template.pod["metadata"]["name"]
        for number in range(min(template.number, _MAX_REPLICAS)):
            yield {**template.pod, "metadata": {**template.pod["metadata"], "name": f"{name}-{number}"}}


def _objects(dump: DumpText) -> Iterator[Object]:
    for document in _documents(dump):
        if not isinstance(document, dict) or "kind" not in document:
            raise BadInput(
                f"{dump.name} is no dump of Kubernetes objects; make one with kubectl get nodes,pods -A -o json"
            )
        for obj in _items(document):
            try:
                msgspec.convert(obj, _Shape)
            except msgspec.ValidationError as error:
                raise BadInput(f"{dump.name} contains an item that is not a Kubernetes object: {error}") from error
            yield obj


def _documents(dump: DumpText) -> list[Any]:
    if not dump.is_json:
        return load_documents(dump.text, dump.name)
    try:
        return [msgspec.json.decode(dump.text)]
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"{dump.name} is not JSON: {error}") from error


def _items(document: Mapping[str, Any]) -> list[Any]:
    """The objects of a list, or the one object. What they are is not checked."""
    items = document.get("items") if str(document["kind"]).endswith("List") else [document]
    return items if isinstance(items, list) else [items]


def _pod(pod: Mapping[str, Any], config: Config) -> SimPod | None:
    if is_over(pod):
        return None
    meta = pod["metadata"]
    name = f"{meta.get('namespace', 'default')}/{meta['name']}"
    try:
        check_pod(pod)
        request = parse(pod, config)
    except BadInput as problem:
        raise BadInput(f"pod {name}: {problem}") from problem
    spec = pod["spec"]
    asked = [(container.get("resources") or {}) for container in spec.get("containers") or ()]
    requests = [{**(each.get("limits") or {}), **(each.get("requests") or {})} for each in asked]
    began = meta.get("creationTimestamp")
    return SimPod(
        name=name,
        cpu=sum(_amount(each, "cpu", 1000) for each in requests),
        memory_mib=sum(_amount(each, "memory", Fraction(1, _MIB)) for each in requests),
        request=request,
        created=msgspec.convert(began, datetime).timestamp() if began else 0.0,
        mig_devices=any(resource.startswith(MIG_DEVICES) for each in requests for resource in each),
        node=spec.get("nodeName") or "",
    )


def _offered(node: Mapping[str, Any]) -> Mapping[str, Any]:
    status = node.get("status") or {}
    return status.get("allocatable") or status.get("capacity") or {}


def _amount(amounts: Mapping[str, Any], name: str, times: int | Fraction) -> int:
    return int(parse_quantity(amounts[name], where=name).value * times) if name in amounts else 0


_UNKNOWN_MIB = 16384


def gpus_of(node: Mapping[str, Any]) -> tuple[Gpu, ...]:
    """The GPUs of a Node object. Raises BadInput where an annotation cannot be read."""
    metadata = node["metadata"]
    try:
        gpus = next((gpus for dialect in registry.DIALECTS if (gpus := dialect.read_node(node))), [])
    except (BadInput, ValueError, LookupError, TypeError, AttributeError, RecursionError, msgspec.DecodeError) as error:
        raise BadInput(f"node {metadata['name']}: its annotation about GPUs cannot be read: {error}") from error
    closed = cordoned(metadata.get("annotations"))
    return tuple(_completed(gpu, closed) for gpu in gpus)


def _completed(gpu: Gpu, closed: frozenset[str]) -> Gpu:
    memory = gpu.memory_mib or _memory_of(gpu.model)
    return msgspec.structs.replace(
        gpu,
        memory_mib=memory,
        capacity_mib=memory,
        cordoned=gpu.uuid in closed,
        reason="" if gpu.healthy else "the dump says so",
    )


def _memory_of(model: str) -> int:
    try:
        return card(model).memory_mib
    except BadInput:
        return _UNKNOWN_MIB
