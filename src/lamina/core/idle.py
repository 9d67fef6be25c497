"""Pods that hold GPUs and do not use them, and what the configuration lets the controller do about them."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from lamina.core.field_types import Count, Group, doc, must_be
from lamina.core.fields import Moment, Name, camel_case, means
from lamina.core.namespaces import includes

MAX_IDLE = 500
"""Pods of one node that its inventory lists."""


class IdlePod(Struct, frozen=True, kw_only=True, rename=camel_case):
    """A pod that holds a GPU and does not use it."""

    pod_uid: Annotated[Name, means("UID of the pod")]
    since: Annotated[Moment, means("When it last used a GPU, in seconds since 1970")]


class IdleShares(Group, frozen=True, kw_only=True):
    """Pods that hold GPUs and run nothing on them. Needs the chart value `controller.idleShares=true`."""

    hours: Annotated[
        Count,
        doc(
            "Time without GPU use after which a pod is given notice; 0 for never.",
            unit="hours",
            reason="Whether an idle pod is wanted is the decision of those who run it.",
        ),
    ] = 0
    notice_minutes: Annotated[
        Annotated[int, Meta(ge=1, le=10080), must_be("an integer from 1 to 10080")],
        doc(
            "Time from the notice until the share is reclaimed, unless the pod uses a GPU or has the annotation "
            "`lamina.dev/keep-idle=true`.",
            unit="minutes",
            reason="Long enough that someone at work can react.",
        ),
    ] = 30
    action: Annotated[
        Annotated[Literal["evict", "scaleToZero"], must_be("evict or scaleToZero")],
        doc(
            "With `evict`, the pod is evicted, as its PodDisruptionBudgets allow. With `scaleToZero`, the replicas of "
            "its Deployment or StatefulSet are set to 0 when all of its pods are due; other pods are left alone.",
            reason="A scaled workload starts again as it was when its replicas are set.",
        ),
    ] = "scaleToZero"
    namespaces: Annotated[
        Annotated[tuple[str, ...], must_be("a list of namespaces")],
        doc("Namespaces in which this applies; `*` for all.", reason="Nothing is reclaimed unless asked for."),
    ] = ()

    def covers(self, namespace: str) -> bool:
        """Whether it applies to pods of the namespace."""
        return self.hours > 0 and includes(self.namespaces, namespace)
