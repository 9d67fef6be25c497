"""What NVIDIA's GPU operator installs: its namespace, the kind ClusterPolicy, and one policy.

The kind accepts any field: the agent reads a few of them, and guides for the operator set others.
"""

from lamina.ports.kube import CLUSTER_POLICIES, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, Kube

NAMESPACE = "nvidia-gpu-operator"
POLICY = "gpu-cluster-policy"

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def publish(kube: Kube) -> None:
    """Create all of it in a new lab."""
    await kube.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await kube.create(CUSTOM_RESOURCE_DEFINITIONS, definition())
    await kube.create(CLUSTER_POLICIES, {"metadata": {"name": POLICY}, "spec": {"mig": {"strategy": "none"}}})


def definition() -> dict[str, object]:
    """The CustomResourceDefinition, without its own kind and version."""
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
