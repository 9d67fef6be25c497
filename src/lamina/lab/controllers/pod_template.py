"""Pod templates: their hash, their equality, and the pod that a controller makes from one."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from lamina.lab.api.quantities import parse
from lamina.lab.informer import objects
from lamina.lab.informer.objects import Object

HASH_LABEL = "pod-template-hash"

# Letters and digits that neither form a word nor look alike, as in the names that kubectl users know.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_AMOUNTS = ("limits", "requests")


def template_hash(template: Mapping[str, Any], collisions: int = 0) -> str:
    """Ten characters for a template, the hash label itself left out. `collisions` sets apart what fell together."""
    data = msgspec.json.encode([_without_hash(template), collisions], order="deterministic")
    number = int.from_bytes(hashlib.sha256(data).digest()[:8])
    letters = []
    for _ in range(10):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return "".join(letters)


def same_template(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two templates ask for the same pod, whatever hash they are labelled with."""
    return _without_hash(one) == _without_hash(other)


def _without_hash(template: Mapping[str, Any]) -> Object:
    """The template as compared: no hash label, nothing that is empty or null, which says the same as absent.

    Amounts count by their value: kubectl writes back "10k" where a manifest said 10000.
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
    """Resource amounts in one spelling; what is none, such as an environment variable of that name, stays."""
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
