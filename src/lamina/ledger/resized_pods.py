"""The pods that ask for another size, or have asked for one."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from lamina.core.sizes import RESIZE, RESIZE_STATUS, RESIZE_WHEN_HELD, WAIT

MAX_TEXT = 2048
"""Characters of the annotation that are read; a longer one is refused, because its end is missing or too much."""


class ResizedPod(NamedTuple):
    """What its annotations say: what it asks for, which may be nothing, and what became of it.

    `waits`: a size below what programs hold waits for them instead of being refused.
    """

    namespace: str
    name: str
    request: str
    status: str
    waits: bool = False


def resized_pod(pod: Mapping[str, Any]) -> ResizedPod | None:
    """None for a pod that was never to be resized."""
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    request, status = str(annotations.get(RESIZE) or "")[:MAX_TEXT], str(annotations.get(RESIZE_STATUS) or "")
    if not request and not status:
        return None
    waits = str(annotations.get(RESIZE_WHEN_HELD) or "").strip() == WAIT
    return ResizedPod(metadata["namespace"], metadata["name"], request, status, waits)
