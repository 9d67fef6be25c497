"""Pod templates: their hash, their comparison, and the pod that a controller creates from one."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.quantities import parse

HASH_LABEL = "pod-template-hash"
REVISION_LABEL = "controller-revision-hash"

# Kubernetes' alphabet for generated names: no vowels, no characters that look alike.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_AMOUNTS = ("limits", "requests")


def template_hash(template: Mapping[str, Any], collisions: int = 0) -> str:
    """Ten characters for a template without its hash label. `collisions` resolves equal hashes."""
    data = msgspec.json.encode([_without_hash(template), collisions], order="deterministic")
    number = int.from_bytes(hashlib.sha256(data).digest()[:8])
    letters = []
    for _ in range(10):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return "".join(letters)


def same_template(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two templates describe the same pod, whatever their hash labels."""
    return _without_hash(one) == _without_hash(other)


def _without_hash(template: Mapping[str, Any]) -> Object:
    """The template for comparison: without the hash label and without empty or null fields.

    Quantities compare by value: kubectl writes "10k" where a manifest has 10000.
    """
    metadata = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    metadata.pop("creationTimestamp", None)
    pruned = _prune({**template, "metadata": {**metadata, "labels": labels}})
    return pruned if isinstance(pruned, dict) else {}


def _prune(value: Any) -> Any:
    if isinstance(value, Mapping):
        entries = {key: _amounts(entry) if key in _AMOUNTS else _prune(entry) for key, entry in value.items()}
        return {key: entry for key, entry in entries.items() if entry is not None and entry not in ({}, [])}
    if isinstance(value, list | tuple):
        return [_prune(entry) for entry in value]
    return value


def _amounts(value: Any) -> Any:
    """Resource quantities in one spelling. Other values, such as an environment variable's, stay unchanged."""
    if not isinstance(value, Mapping):
        return _prune(value)
    return {name: entry if (amount := parse(entry)) is None else str(amount) for name, entry in value.items()}


def with_labels(template: Mapping[str, Any], extra: Mapping[str, str]) -> Object:
    metadata = dict(template.get("metadata") or {})
    metadata["labels"] = {**(metadata.get("labels") or {}), **extra}
    return {**template, "metadata": metadata}


def pod_from(
    template: Mapping[str, Any], owner: Mapping[str, Any], api_version: str, kind: str, labels: Mapping[str, str]
) -> Object:
    """A pod to create for `owner`: the template's labels and annotations, plus `labels`, named `<owner>-xxxxx`."""
    metadata = template.get("metadata") or {}
    made: Object = {
        "generateName": f"{objects.name(owner)}-",
        "namespace": objects.namespace(owner),
        "labels": {**(metadata.get("labels") or {}), **labels},
        "ownerReferences": [objects.owner_reference(api_version, kind, owner)],
    }
    if metadata.get("annotations"):
        made["annotations"] = dict(metadata["annotations"])
    if metadata.get("finalizers"):
        made["finalizers"] = list(metadata["finalizers"])
    spec = dict(template.get("spec") or {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec}
