"""Lists of namespaces in the configuration, in which `*` stands for all."""

from collections.abc import Collection


def includes(namespaces: Collection[str], namespace: str) -> bool:
    """Whether the list names the namespace."""
    return namespace in namespaces or "*" in namespaces
