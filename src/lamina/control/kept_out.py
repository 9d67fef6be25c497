"""Nodes on which Lamina is not to serve, as their labels say.

Agents run on none of them. What an agent published before it left stays, and another device plugin may serve the same
resource there by now, one that knows of no limits. So whoever places pods has to look at the labels as well.
"""

from lamina.ports.kube import Object

KEPT_OUT = (("lamina.dev/agent", "false"), ("nvidia.com/gpu.deploy.device-plugin", "true"))
"""A word of people, and the label by which NVIDIA's operator runs its plugin."""


def is_kept_out(node: Object) -> bool:
    """Whether the node carries one of the labels."""
    labels = node["metadata"].get("labels") or {}
    return any(labels.get(key) == value for key, value in KEPT_OUT)
