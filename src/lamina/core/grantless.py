"""What the configuration lets the controller do about pods that have tickets of a node without a grant."""

from typing import Annotated

from lamina.core.field_types import Count, Group, doc, must_be
from lamina.core.namespaces import includes

NAMED_AFTER_S = 60.0
"""How long a pod is without a grant until it is named."""


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
