"""The scheduling gate of pods with ResourceClaims. kube-scheduler knows no quotas on GPU memory and compute, so such a
pod waits until the controller has compared its claims with the quotas of its namespace."""

from collections.abc import Iterator, Mapping
from typing import Any

from lamina.dialects.patches import PatchOperation, add_metadata

GATE = "lamina.dev/claim-quota"
"""The name of the gate, and of the label by which the controller finds such pods."""


def gate_claims(pod: Mapping[str, Any]) -> Iterator[PatchOperation]:
    """What is to be changed in a new pod with claims, in the order in which it can be applied."""
    if not pod["spec"].get("resourceClaims") or pod["spec"].get("nodeName"):
        return
    metadata = pod.get("metadata") or {}
    yield from add_metadata("labels", metadata.get("labels"), {GATE: "true"})
    if not has_gate(pod):
        gate = {"name": GATE}
        present = pod["spec"].get("schedulingGates")
        yield (
            PatchOperation("/spec/schedulingGates/-", gate)
            if present
            else PatchOperation("/spec/schedulingGates", [gate])
        )


def has_gate(pod: Mapping[str, Any]) -> bool:
    return any(each.get("name") == GATE for each in pod["spec"].get("schedulingGates") or ())
