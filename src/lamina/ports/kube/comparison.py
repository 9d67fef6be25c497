"""Whether an object on the API server already contains what Lamina would write, so that the write can be skipped."""

from typing import Any


def includes(present: Any, wanted: Any) -> bool:
    """Whether everything wanted is present. Fields that the API server added do not matter."""
    if isinstance(wanted, dict):
        return isinstance(present, dict) and all(
            key in present and includes(present[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        same_length = isinstance(present, list) and len(present) == len(wanted)
        return same_length and all(includes(one, other) for one, other in zip(present, wanted, strict=True))
    return bool(present == wanted)
