"""Names of objects in Kubernetes."""

import re

MAX_LENGTH = 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


def is_object_name(text: str) -> bool:
    """Whether an object can have this name. No such name changes an address or a line of a log that contains it."""
    return len(text) <= MAX_LENGTH and _SUBDOMAIN.fullmatch(text) is not None
