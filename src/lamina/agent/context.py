"""What the parts of one agent work with."""

from dataclasses import dataclass

from lamina.agent.containers.paths import HostPaths
from lamina.agent.state.cluster import ClusterClient
from lamina.agent.state.observed import AppliedConfig, Refusals
from lamina.agent.state.record import Record
from lamina.agent.state.settings import AgentSettings
from lamina.configuration import Config
from lamina.ports.clock import Clock
from lamina.ports.files import Files
from lamina.ports.kube import EventRecorder, Kube
from lamina.ports.kubelet.allocations import PodResources
from lamina.ports.nvml import Nvml
from lamina.ports.set_aside import SetAside


@dataclass(frozen=True, kw_only=True)
class NodeContext:
    """One node's configuration, its ports, and its records. Each configuration has a context of its own."""

    settings: AgentSettings
    config: Config
    nvidia: AppliedConfig
    clock: Clock
    files: Files
    kube: Kube
    nvml: Nvml
    events: EventRecorder
    cluster: ClusterClient
    pod_resources: PodResources
    paths: HostPaths
    record: Record
    aside: SetAside
    """What the agent has set aside, under any configuration."""
    refusals: Refusals
    """The configurations of the node that the agent refuses."""

    @property
    def node(self) -> str:
        """The node's name."""
        return self.settings.node
