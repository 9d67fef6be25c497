"""Pods whose borrowed memory neighbors need, and what the configuration lets the controller do about them."""

from typing import Annotated

from msgspec import Meta, Struct

from lamina.core.field_types import Count, Group, doc, must_be
from lamina.core.fields import Moment, Name, camel_case, means
from lamina.core.namespaces import includes

MAX_DISPLACED = 64
"""Pods of one node that its inventory lists."""


class DisplacedBorrower(Struct, frozen=True, kw_only=True, rename=camel_case):
    """The youngest borrower of a GPU whose memory neighbors need."""

    pod_uid: Annotated[Name, means("UID of the pod")]
    since: Annotated[Moment, means("When it had to keep memory on the host, in seconds since 1970")]


class Borrowers(Group, frozen=True, kw_only=True):
    """Pods whose borrowed memory neighbors need. Needs the chart value `controller.borrowers=true`."""

    seconds: Annotated[
        Count,
        doc(
            "Time with borrowed memory on the host after which the youngest borrower of a GPU is given notice; 0 for "
            "never.",
            unit="seconds",
            reason="A borrower goes on without a restart, only slower.",
        ),
    ] = 0
    notice_seconds: Annotated[
        Annotated[int, Meta(ge=10, le=86400), must_be("an integer from 10 to 86400")],
        doc(
            "Time from the notice until the pod is evicted, unless it returns the memory or has the annotation "
            "`lamina.dev/keep-borrower=true`.",
            unit="seconds",
            reason="Long enough for a program that watches the annotation to save its state.",
        ),
    ] = 60
    namespaces: Annotated[
        Annotated[tuple[str, ...], must_be("a list of namespaces")],
        doc("Namespaces in which this applies; `*` for all.", reason="Nothing is evicted unless asked for."),
    ] = ()

    def covers(self, namespace: str) -> bool:
        """Whether it applies to pods of the namespace."""
        return self.seconds > 0 and includes(self.namespaces, namespace)
