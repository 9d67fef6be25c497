"""The configuration of NVIDIA's device plugin that applies to the node."""

from msgspec import Struct

from lamina.configuration.nvidia import NvidiaConfig
from lamina.core.sharing import ReplicaSharing


class AppliedConfig(Struct, frozen=True, kw_only=True):
    """The configuration that applies and its name. Without a `config` the node offers shares."""

    name: str = ""
    config: NvidiaConfig | None = None
    policy: str = ""
    """The MIG strategy of the ClusterPolicy or of `nvidia.migStrategy`; it applies without a `config` too."""

    def mig_strategy(self, default: str) -> str:
        """The MIG strategy; `default` if this configuration sets none or "none"."""
        own = self.policy or (self.config.mig_strategy if self.config is not None else "none")
        return default if own == "none" else own

    @property
    def machine_type_file(self) -> str:
        """The file with the product name of the machine; empty for the usual one."""
        return "" if self.config is None else self.config.machine_type_file

    @property
    def label_timestamps(self) -> bool:
        """Whether labels may have the time of the last change."""
        return self.config is None or self.config.label_timestamps

    @property
    def sharing(self) -> ReplicaSharing:
        return ReplicaSharing() if self.config is None else self.config.sharing


NO_CONFIG = AppliedConfig()
