"""The filter's answer for nodes that do not exist: an autoscaler asks whether a new node of a pool would help a pod.

It sends whole Node objects. A node that exists is judged by its Inventory alone, also while it has none yet; another
one is judged by its labels, with the rules that decide about all nodes. Nothing is held or granted by this answer:
a pod can be bound only after the node and its Inventory exist.
"""

from collections.abc import Callable, Mapping, Sequence

from lamina.config_source.live import LiveConfiguration
from lamina.controller.scheduling.scheduler import FilterResult, Scheduler
from lamina.core.requests import PodRequest
from lamina.dialects.template_nodes import template_inventory
from lamina.errors import BadInput
from lamina.ledger.pods import ParsedPod
from lamina.placement import Misfit, NodeState, fit, miss_of
from lamina.ports.kube import Object


class AutoscalerNodes:
    """Reads the configuration and changes nothing. `exists` says whether the API server has a node of this name."""

    def __init__(self, scheduler: Scheduler, configuration: LiveConfiguration, exists: Callable[[str], bool]) -> None:
        self._scheduler = scheduler
        self._configuration = configuration
        self._exists = exists

    def among(self, nodes: Sequence[Object]) -> Mapping[str, Object]:
        """Those of the nodes that do not exist, by name."""
        return {name: node for node in nodes if not self._exists(name := node["metadata"]["name"])}

    def filter(self, pod: ParsedPod, templates: Mapping[str, Object]) -> FilterResult:
        """On which new nodes the pod would fit."""
        if refusal := self._scheduler.rules.refused_everywhere(pod):
            return FilterResult(fitting=[], error=refusal, summary=refusal)
        if pod.request is None:
            return FilterResult(fitting=list(templates))
        refused = {name: self._refusal(pod, pod.request, node) for name, node in templates.items()}
        fitting = [name for name, reason in refused.items() if not reason]
        refused = {name: reason for name, reason in refused.items() if reason}
        return FilterResult(fitting=fitting, unresolvable=refused)

    def add(self, result: FilterResult, pod: ParsedPod, templates: Mapping[str, Object]) -> FilterResult:
        """The answer for existing nodes, with that for new ones."""
        found = self.filter(pod, templates)
        return FilterResult(
            fitting=[*result.fitting, *found.fitting],
            failed=result.failed,
            unresolvable={**result.unresolvable, **found.unresolvable},
            error=result.error,
            summary="" if found.fitting else result.summary,
            cause=result.cause,
        )

    def _refusal(self, pod: ParsedPod, request: PodRequest, node: Object) -> str:
        """Why the pod would not fit on the node, or nothing."""
        config = self._configuration.value
        try:
            inventory = template_inventory(node, config)
        except BadInput as problem:
            return str(problem)
        if inventory.offers_native_devices(request.native_devices):
            return self._scheduler.rules.uncounted_devices(pod, request)
        if request.only_native_reason:
            return request.only_native_reason
        request = self._scheduler.rules.bounded(pod, request)
        placement = fit(request, NodeState.of(inventory.node, inventory, rules=config.mig_rules))
        return miss_of(placement).reason if isinstance(placement, Misfit) else ""
