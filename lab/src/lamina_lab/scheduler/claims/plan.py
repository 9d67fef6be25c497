"""What the claims of one pod would get on each node, decided with the view of one attempt."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from lamina.ports.kube import Object
from lamina_lab.kubernetes import objects
from lamina_lab.kubernetes.node_affinity import term_holds
from lamina_lab.scheduler.claims.of_pod import extended_claim, is_allocated, is_extended_resource
from lamina_lab.scheduler.devices.allocator import Allocator
from lamina_lab.scheduler.devices.search import AllocationError
from lamina_lab.scheduler.rules.node_view import NodeView, served_by_claim
from lamina_lab.scheduler.rules.pod_requests import requests

CANNOT_FIT = "cannot fit resource"
UNAVAILABLE = "resourceclaim not available on the node"
NO_DEVICES = "cannot allocate all claims"


class PodAllocation(Struct, frozen=True):
    """Claims of a pod, and what they get on the chosen node.

    `extended` is the claim for extended resources, which is still to be created; `mappings` are its requests.
    """

    claims: tuple[Object, ...]
    allocations: tuple[Object, ...]
    extended: Object | None = None
    mappings: tuple[Object, ...] = ()


class ClaimPlan:
    """For one pod. `claims` are those that it names; `served` are extended resources by class."""

    def __init__(self, pod: Object, claims: Sequence[Object], served: Mapping[str, str], allocator: Allocator) -> None:
        self._pod = pod
        self._allocated = [claim for claim in claims if is_allocated(claim)]
        self._waiting = [claim for claim in claims if not is_allocated(claim)]
        self._served = served
        self._allocator = allocator
        self._found: dict[str, PodAllocation] = {}

    def by_claim(self, view: NodeView) -> frozenset[str]:
        """The extended resources of the pod that a claim serves on this node."""
        return served_by_claim(view.allocatable, self._served)

    def reason(self, view: NodeView, by_claim: frozenset[str]) -> str | None:
        """Why the node cannot serve the claims; None if it can."""
        if self._served and self._lacks_a_name(view, by_claim):
            return CANNOT_FIT
        node = view.node
        if not all(_available(claim, node) for claim in self._allocated):
            return UNAVAILABLE
        made = extended_claim(self._pod, {name: self._served[name] for name in by_claim})
        extended, mappings = made or (None, [])
        wanted = [*self._waiting, *([extended] if extended else [])]
        try:
            allocations = self._allocator.allocate(node, wanted) if wanted else []
        except AllocationError as error:
            return str(error)
        if allocations is None:
            return NO_DEVICES
        claims = (*self._waiting, *self._allocated)
        results = (
            *allocations[: len(self._waiting)],
            *(objects.status(claim)["allocation"] for claim in self._allocated),
        )
        if extended:
            extended = {**extended, "status": {"allocation": allocations[-1]}}
        self._found[objects.name(node)] = PodAllocation(claims, results, extended, tuple(mappings))
        return None

    def _lacks_a_name(self, view: NodeView, by_claim: frozenset[str]) -> bool:
        """Whether the node does not list an extended resource of the pod, be it one that an extender manages."""
        asked = {name for name, amount in requests(self._pod).items() if amount and is_extended_resource(name)}
        return not asked <= by_claim | view.allocatable.keys()

    def on(self, node: str) -> PodAllocation:
        """The allocation on a node that can serve the claims."""
        return self._found[node]


def _available(claim: Object, node: Object) -> bool:
    selector = objects.status(claim)["allocation"].get("nodeSelector")
    return not selector or any(term_holds(term, node) for term in selector.get("nodeSelectorTerms") or ())
