"""Pods that hold GPUs and do not use them, and what the configuration lets the controller do about them."""

from typing import Literal

from msgspec import Struct

from lamina.model.namespaces import includes

MAX_IDLE = 500
"""Pods of one node that its inventory lists."""
IdleAction = Literal["evict", "scaleToZero"]


class IdlePod(Struct, frozen=True, kw_only=True):
    """`since` is when it last used a GPU, in seconds since 1970."""

    pod_uid: str
    since: int


class IdlePolicy(Struct, frozen=True, kw_only=True):
    """What happens to pods that have used no GPU for so long, and have been given notice. Without hours, nothing."""

    hours: int
    notice_s: float
    action: IdleAction
    namespaces: tuple[str, ...]

    def covers(self, namespace: str) -> bool:
        return self.hours > 0 and includes(self.namespaces, namespace)
