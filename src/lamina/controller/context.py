"""What most parts of the controller share: the API server, the clock, the configuration, and what is known so far."""

from dataclasses import dataclass, field

from lamina.config_source.live import LiveConfiguration
from lamina.controller.capacity.cluster_state import ClusterState
from lamina.controller.pending_pods import PendingPods
from lamina.controller.pod_parser import PodParser
from lamina.ledger.claim_usage import ClaimUsage
from lamina.ledger.ledger import Ledger
from lamina.ledger.pod_rules import PodRules
from lamina.ledger.pods import ParsedPod
from lamina.ledger.quotas import ResourceQuotas
from lamina.ports.clock import Clock
from lamina.ports.kube import Kube, Object, Resource
from lamina.ports.kube.follow import FollowedCollection
from lamina.ports.set_aside import SetAside


@dataclass(frozen=True)
class Context:
    """One cluster as one replica sees it."""

    kube: Kube
    clock: Clock
    configuration: LiveConfiguration
    cluster_state: ClusterState
    quotas: ResourceQuotas
    pending: PendingPods = field(default_factory=PendingPods)
    parser: PodParser = field(default_factory=PodParser)
    followed: dict[Resource, FollowedCollection] = field(default_factory=dict)
    """What the watches follow."""

    @property
    def ledger(self) -> Ledger:
        return self.cluster_state.ledger

    @property
    def set_aside(self) -> SetAside:
        return self.cluster_state.set_aside

    @property
    def rules(self) -> PodRules:
        return PodRules(self.ledger, self.quotas, self.cluster_state.claims)

    @property
    def claim_usage(self) -> ClaimUsage:
        return ClaimUsage(self.ledger, self.quotas, self.cluster_state.claims, lambda: self.configuration.value)

    def note(self, resource: Resource, obj: Object) -> bool:
        """The object was read or written, and what is known from that has to end with it. Returns whether it may still
        exist: False where a watch has reported its deletion already."""
        followed = self.followed.get(resource)
        return followed is None or followed.note(obj)

    def now(self) -> float:
        """Seconds of the monotonic clock, for durations."""
        return self.clock.monotonic()

    def parse(self, obj: Object) -> ParsedPod:
        """The pod with its request under the configuration in force."""
        config = self.configuration.value
        return self.pending.same(obj, config) or self.parser.parse(obj, config)
