"""Pods whose borrowed memory neighbors need, and what the configuration lets the controller do about them."""

from msgspec import Struct

from lamina.model.namespaces import includes

MAX_DISPLACED = 64
"""Pods of one node that its inventory lists."""


class DisplacedBorrower(Struct, frozen=True, kw_only=True):
    """The youngest borrower of a GPU, which has had to keep memory on the host `since`, in seconds since 1970."""

    pod_uid: str
    since: int


class BorrowerPolicy(Struct, frozen=True, kw_only=True):
    """What happens to such pods after so many seconds, and after notice. With 0 seconds, nothing."""

    after_s: float
    notice_s: float
    namespaces: tuple[str, ...]

    def covers(self, namespace: str) -> bool:
        return self.after_s > 0 and includes(self.namespaces, namespace)
