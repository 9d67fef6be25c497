"""Pods that may be evicted: for more important ones, without a grant, idle, or borrowers whose memory neighbors need.

What the configuration says about them, and how an inventory lists them.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from lamina.core.field_types import Count, Group, doc, must_be
from lamina.core.fields import Moment, Name, camel_case, means
from lamina.core.object_names import includes

NAMED_AFTER_S = 60.0
"""How long a pod is without a grant until it is named."""


class PreemptionRules(Group, frozen=True, kw_only=True):
    """When pods are evicted for one of higher priority, by kube-scheduler or by the controller."""

    delay_seconds: Annotated[
        Annotated[int, Meta(ge=0, le=86400), must_be("an integer from 0 to 86400")],
        doc(
            "Time that a pod or a pod group waits for room before others are evicted for it.",
            unit="seconds",
            reason="A pod of higher priority is more important, as kube-scheduler sees it.",
        ),
    ] = 0
    minimum_runtime_minutes: Annotated[
        Annotated[int, Meta(ge=0, le=43200), must_be("an integer from 0 to 43200")],
        doc(
            "Time for which a pod with GPUs runs until it may be evicted for another one.",
            unit="minutes",
            reason="Kubernetes evicts pods of lower priority whatever their age.",
        ),
    ] = 0

    def delays(self, waited_s: float) -> bool:
        """Whether a pod that has waited for so long has to wait on, before others are evicted for it."""
        return self.delay_seconds > 0 and waited_s < self.delay_seconds

    def spares(self, ran_s: float) -> bool:
        """Whether a pod stays that has run for so long."""
        return self.minimum_runtime_minutes > 0 and ran_s < 60 * self.minimum_runtime_minutes


class GrantlessPods(Group, frozen=True, kw_only=True):
    """Pods that have tickets of a node without a grant, because Lamina did not place them."""

    seconds: Annotated[
        Count,
        doc(
            "Time without a grant after which such a pod is evicted; 0 for never. It is named after a minute in any "
            "case. Pods whose containers with tickets have started stay.",
            unit="seconds",
            reason="It cannot start, and other pods cannot have its tickets. There is time to see it.",
        ),
    ] = 300
    exempt: Annotated[
        Annotated[tuple[str, ...], must_be("a list of namespaces")],
        doc("Namespaces whose pods are named and never evicted; `*` for all.", reason="No such pod can start."),
    ] = ()

    def evicts(self, namespace: str, since_s: float) -> bool:
        """Whether a pod of the namespace that has been without a grant for so long is evicted."""
        return 0 < self.seconds <= since_s and not includes(self.exempt, namespace)


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
