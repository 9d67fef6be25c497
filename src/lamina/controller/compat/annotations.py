"""Annotations and labels on a bound pod: those that its dialect's tools expect, and the mode that it got."""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from lamina.core.gpus import Inventory
from lamina.core.grants import Grant
from lamina.core.sizes import usable
from lamina.dialects import dialect_named
from lamina.dialects.metadata import BoundPod, Metadata
from lamina.ports.kube import BindingMetadata

MODE = "lamina.dev/mode"


def share_annotations(
    pod: Mapping[str, Any], grant: Grant, now: float, inventory: Inventory | None = None
) -> Mapping[str, str]:
    """Of the dialect's annotations, those that say which shares the pod may use now, after a resize."""
    dialect = dialect_named(grant.dialect)
    if dialect is None:
        return {}
    present = structs.replace(grant, containers=tuple(map(usable, grant.containers)))
    annotations = dialect.pod_metadata(BoundPod(pod["spec"], present, now, inventory)).annotations
    return {key: annotations[key] for key in dialect.share_annotations if key in annotations}


def binding_metadata(
    pod: Mapping[str, Any], grant: Grant, now: float, inventory: Inventory | None = None
) -> BindingMetadata:
    """What the pod's Binding carries. `now` is Unix time, `inventory` the node's."""
    dialect = dialect_named(grant.dialect)
    metadata = dialect.pod_metadata(BoundPod(pod["spec"], grant, now, inventory)) if dialect else Metadata()
    modes = "; ".join(f"{container.name}: {container.because}" for container in grant.containers if container.because)
    annotations = {**metadata.annotations, MODE: modes} if modes else metadata.annotations
    return BindingMetadata(annotations, metadata.labels)
