"""Names of objects and lists of namespaces, as Kubernetes and the configuration have them."""

import re
from collections.abc import Collection

MAX_LENGTH = 253
MAX_LABEL = 63
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def is_object_name(text: str) -> bool:
    """Whether an object can have this name. No such name changes an address or a line of a log that contains it."""
    return len(text) <= MAX_LENGTH and _SUBDOMAIN.fullmatch(text) is not None


def is_namespace_name(text: str) -> bool:
    """Whether a namespace can have this name, which is a part of names in DNS too."""
    return len(text) <= MAX_LABEL and _LABEL.fullmatch(text) is not None


def includes(namespaces: Collection[str], namespace: str) -> bool:
    """Whether the list names the namespace."""
    return namespace in namespaces or "*" in namespaces
