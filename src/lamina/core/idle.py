"""Pods that hold GPUs and do not use them, and what the configuration lets the controller do about them."""

from typing import Annotated, Literal

from msgspec import Struct

from lamina.core.fields import Moment, Name, camel_case, means
from lamina.core.namespaces import includes

MAX_IDLE = 500
"""Pods of one node that its inventory lists."""
IdleAction = Literal["evict", "scaleToZero"]


class IdlePod(Struct, frozen=True, kw_only=True, rename=camel_case):
    """A pod that holds a GPU and does not use it."""

    pod_uid: Annotated[Name, means("UID of the pod")]
    since: Annotated[Moment, means("When it last used a GPU, in seconds since 1970")]


class IdlePolicy(Struct, frozen=True, kw_only=True):
    """What happens to pods that have used no GPU for so long, and have been given notice. Without hours, nothing."""

    hours: int
    notice_s: float
    action: IdleAction
    namespaces: tuple[str, ...]

    def covers(self, namespace: str) -> bool:
        return self.hours > 0 and includes(self.namespaces, namespace)
