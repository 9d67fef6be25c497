"""What the configuration lets the controller do about pods that have tickets of a node without a grant."""

from msgspec import Struct

from lamina.core.namespaces import includes

NAMED_AFTER_S = 60.0
"""How long a pod is without a grant until it is named."""


class GrantlessPolicy(Struct, frozen=True, kw_only=True):
    """Such pods are evicted after so many seconds, except in exempt namespaces. With 0 seconds, none is."""

    after_s: float
    exempt: tuple[str, ...]

    def evicts(self, namespace: str, since_s: float) -> bool:
        """Whether a pod of the namespace that has been without a grant for so long is evicted."""
        return 0 < self.after_s <= since_s and not includes(self.exempt, namespace)
