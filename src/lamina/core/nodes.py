"""Which nodes with GPUs are not Lamina's, by their labels, and which ones pods avoid, by their taints."""

from collections.abc import Mapping
from typing import Any

_PAUSED = ("paused-for-mig-change", "paused-for-driver-upgrade")
"""What NVIDIA's operator writes for a while in the place of true."""
KEPT_OUT = (("lamina.dev/agent", ("false",)), ("nvidia.com/gpu.deploy.device-plugin", ("true", *_PAUSED)))
"""A word of people, and the label by which NVIDIA's operator runs its plugin, with the values that keep Lamina out."""


def kept_out(labels: Mapping[str, str] | None) -> bool:
    """Whether labels exclude a node from Lamina: it has no agent, offers nothing, and gets no shares."""
    return any((labels or {}).get(key) in values for key, values in KEPT_OUT)


def is_discouraged(node: Mapping[str, Any]) -> bool:
    """Whether a taint of the node keeps pods away that could go elsewhere."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(taint.get("effect") == "PreferNoSchedule" for taint in taints)
