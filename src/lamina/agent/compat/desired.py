"""All compatibility metadata of a node: desired, current, and the patches between them. Pure."""

from collections.abc import Mapping, Set
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.agent.compat import amounts
from lamina.agent.state.observed_node import ObservedNode
from lamina.configuration import Config
from lamina.dialects.metadata import NodeFacts
from lamina.dialects.registry import labels_of_others, node_annotations, node_metadata, owns_label
from lamina.ports.kube import Object


class CompatMetadata(Struct, frozen=True, kw_only=True):
    """Labels, annotations and extended resources of a node."""

    labels: Mapping[str, str] = {}
    timestamps: Set[str] = frozenset()
    """Further labels, which have the Unix time of the last change of labels."""
    annotations: Mapping[str, str] = {}
    amounts: Mapping[str, int] = {}


def desired_metadata(node: NodeFacts, config: Config) -> CompatMetadata:
    """The metadata of a node; one that offers nothing has none.

    Partitioned GPUs are not in the inventory, but labels describe them like the others.
    """
    inventory, settings = node.inventory, config.for_node(node.inventory.node)
    offered = {gpu.uuid for gpu in inventory.gpus}
    partitioned = {gpu.uuid for gpu in node.gpus if gpu.mig_enabled and settings.offers(gpu.uuid, gpu.index)}
    described = tuple(gpu for gpu in node.gpus if gpu.uuid in offered | partitioned)
    if not described:
        return CompatMetadata()
    metadata = node_metadata(replace(node, gpus=described), config)
    return CompatMetadata(
        labels=metadata.labels,
        timestamps=metadata.timestamps,
        annotations=metadata.annotations,
        amounts=amounts.desired_amounts(inventory, config) if offered else {},
    )


def metadata_patch(desired: CompatMetadata, observed: ObservedNode, *, labelling: bool, now: float) -> Object | None:
    """The merge patch that makes labels and annotations as desired; None if they are.

    Labels that other programs write are left alone, and without `labelling` all labels are.
    """
    labels = _changed_labels(desired, observed, now) if labelling else {}
    annotations = _difference(desired.annotations, observed.annotations, node_annotations())
    changed = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
    return {"metadata": {"uid": observed.uid, **changed}} if changed else None


def _changed_labels(desired: CompatMetadata, observed: ObservedNode, now: float) -> dict[str, Any]:
    """The labels to set, and None for each to remove. Only a change of others changes a timestamp."""
    others = labels_of_others(observed.annotations)
    ours = {key for key in {*observed.labels, *desired.labels, *desired.timestamps} if owns_label(key)} - others
    labels = {key: value for key, value in desired.labels.items() if key in ours}
    changed = _difference(labels, observed.labels, ours - desired.timestamps)
    stamped = {key for key in desired.timestamps & ours if changed or key not in observed.labels}
    return changed | dict.fromkeys(stamped, str(int(now)))


def status_patch(desired: CompatMetadata, observed: ObservedNode, names: Set[str]) -> Object | None:
    """The merge patch that makes the resources `names` as desired; None if they are."""
    texts = {name: amounts.format_quantity(amount) for name, amount in desired.amounts.items()}
    status = {
        "capacity": _difference(texts, observed.capacity, names),
        "allocatable": _difference(texts, observed.allocatable, names),
    }
    changed = {key: value for key, value in status.items() if value}
    return {"status": changed} if changed else None


def _difference(want: Mapping[str, str], have: Mapping[str, str], ours: Set[str]) -> dict[str, Any]:
    """The values to set, and None for each of `ours` to remove."""
    changed: dict[str, Any] = {key: value for key, value in want.items() if have.get(key) != value}
    return changed | dict.fromkeys((ours & have.keys()) - want.keys())
