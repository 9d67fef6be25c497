"""Whether an object on the server already says what we would write: a write that changes nothing is left out."""

from typing import Any


def includes(present: Any, wanted: Any) -> bool:
    """Whether everything wanted is there; what the server added of its own does not matter."""
    if isinstance(wanted, dict):
        return isinstance(present, dict) and all(
            key in present and includes(present[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        same_length = isinstance(present, list) and len(present) == len(wanted)
        return same_length and all(includes(one, other) for one, other in zip(present, wanted, strict=True))
    return bool(present == wanted)
