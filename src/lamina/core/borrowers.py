"""Pods whose borrowed memory neighbors need, and what the configuration lets the controller do about them."""

from typing import Annotated

from msgspec import Struct

from lamina.core.fields import Moment, Name, camel_case, means
from lamina.core.namespaces import includes

MAX_DISPLACED = 64
"""Pods of one node that its inventory lists."""


class DisplacedBorrower(Struct, frozen=True, kw_only=True, rename=camel_case):
    """The youngest borrower of a GPU whose memory neighbors need."""

    pod_uid: Annotated[Name, means("UID of the pod")]
    since: Annotated[Moment, means("When it had to keep memory on the host, in seconds since 1970")]


class BorrowerPolicy(Struct, frozen=True, kw_only=True):
    """What happens to such pods after so many seconds, and after notice. With 0 seconds, nothing."""

    after_s: float
    notice_s: float
    namespaces: tuple[str, ...]

    def covers(self, namespace: str) -> bool:
        return self.after_s > 0 and includes(self.namespaces, namespace)
