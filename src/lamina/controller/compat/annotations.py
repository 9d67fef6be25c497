"""Annotations and labels on a bound pod: those that its dialect's tools expect, and the mode that it got."""

from collections.abc import Mapping
from typing import Any

from lamina.dialects import dialect_named
from lamina.dialects.metadata import BoundPod, Metadata
from lamina.model.gpus import Inventory
from lamina.model.grants import Grant
from lamina.ports.kube import Object

MODE = "lamina.dev/mode"


def metadata_patch(
    pod: Mapping[str, Any], grant: Grant, now: float, inventory: Inventory | None = None
) -> Object | None:
    """The merge patch for a bound pod, or None where there is nothing to write.

    `now` is Unix time, `inventory` the node's. The API server refuses the patch if another pod has the name now.
    """
    dialect = dialect_named(grant.dialect)
    metadata = dialect.pod_metadata(BoundPod(pod["spec"], grant, now, inventory)) if dialect else Metadata()
    modes = "; ".join(f"{container.name}: {container.because}" for container in grant.containers if container.because)
    annotations = {**metadata.annotations, MODE: modes} if modes else metadata.annotations
    changes = {"annotations": annotations, "labels": metadata.labels}
    written = {field: values for field, values in changes.items() if values}
    return {"metadata": {"uid": grant.pod_uid, **written}} if written else None
