"""Cluster dumps as `kubectl get nodes,pods -o json` writes them; Inventory objects in them are read too."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import yaml

from lamina.control.grant_objects import inventory_of
from lamina.dialects import parse
from lamina.dialects.config import Config
from lamina.errors import BadInput
from lamina.model.kube_quantity import parse_quantity
from lamina.ports.kube import Object
from lamina.simulate.node_gpus import gpus_of
from lamina.simulate.workload import SimNode, SimPod

_MIB = 1 << 20
MIG_DEVICES = "nvidia.com/mig-"
"""How names of resources begin that are MIG devices of a profile."""
_ENDED = ("Succeeded", "Failed")


def nodes(path: Path) -> list[SimNode]:
    """The nodes of the dump. Raises BadInput."""
    found = list(_objects(path))
    inventories = {each["metadata"]["name"]: inventory_of(each) for each in found if each.get("kind") == "Inventory"}
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


def pods(path: Path, config: Config) -> list[SimPod]:
    """The pods of the dump that have not ended, the oldest first. Raises BadInput as admission does."""
    made = [_pod(each, config) for each in _objects(path) if each.get("kind") == "Pod"]
    return sorted((pod for pod in made if pod is not None), key=lambda pod: pod.created)


def _objects(path: Path) -> Iterator[Object]:
    text = path.read_bytes()
    try:
        documents = [msgspec.json.decode(text)] if path.suffix == ".json" else list(yaml.safe_load_all(text))
    except (msgspec.DecodeError, yaml.YAMLError) as error:
        raise BadInput(f"{path} is neither JSON nor YAML: {' '.join(str(error).split())}") from error
    for document in documents:
        if not isinstance(document, dict) or "kind" not in document:
            raise BadInput(f"{path} is no dump of Kubernetes objects; make one with kubectl get nodes,pods -A -o json")
        yield from document["items"] if str(document["kind"]).endswith("List") else [document]


def _pod(pod: Mapping[str, Any], config: Config) -> SimPod | None:
    if (pod.get("status") or {}).get("phase") in _ENDED:
        return None
    meta, spec = pod["metadata"], pod["spec"]
    asked = [(container.get("resources") or {}) for container in spec.get("containers") or ()]
    requests = [{**(each.get("limits") or {}), **(each.get("requests") or {})} for each in asked]
    name = f"{meta.get('namespace', 'default')}/{meta['name']}"
    try:
        request = parse(pod, config)
    except BadInput as problem:
        raise BadInput(f"pod {name}: {problem}") from problem
    began = meta.get("creationTimestamp")
    return SimPod(
        name=name,
        cpu=sum(_amount(each, "cpu", 1000) for each in requests),
        memory_mib=sum(_amount(each, "memory", Fraction(1, _MIB)) for each in requests),
        request=request,
        created=datetime.fromisoformat(began).timestamp() if began else 0.0,
        mig_devices=any(resource.startswith(MIG_DEVICES) for each in requests for resource in each),
        node=spec.get("nodeName") or "",
    )


def _offered(node: Mapping[str, Any]) -> Mapping[str, Any]:
    status = node.get("status") or {}
    return status.get("allocatable") or status.get("capacity") or {}


def _amount(amounts: Mapping[str, Any], name: str, times: int | Fraction) -> int:
    return int(parse_quantity(amounts[name], where=name).value * times) if name in amounts else 0
