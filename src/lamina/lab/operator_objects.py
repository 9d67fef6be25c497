"""What NVIDIA's operator would have brought: its namespace, its kind ClusterPolicy, and the policy of that kind.

The kind is open: the agent reads a few of its fields, and people who follow a guide for the operator set others.
"""

from lamina.ports.kube import CLUSTER_POLICIES, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, Kube

NAMESPACE = "nvidia-gpu-operator"
POLICY = "gpu-cluster-policy"

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def publish(kube: Kube) -> None:
    """Make all of it in a new lab."""
    await kube.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await kube.create(CUSTOM_RESOURCE_DEFINITIONS, definition())
    await kube.create(CLUSTER_POLICIES, {"metadata": {"name": POLICY}, "spec": {"mig": {"strategy": "none"}}})


def definition() -> dict[str, object]:
    """The kind, without its own kind and version."""
    kind, plural, group = CLUSTER_POLICIES.kind, CLUSTER_POLICIES.plural, CLUSTER_POLICIES.group
    version = {
        "name": CLUSTER_POLICIES.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _ANYTHING, "status": _ANYTHING}}},
    }
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [version],
        },
    }
