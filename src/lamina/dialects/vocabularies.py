"""The vocabularies that are served: under which names containers ask for shares in each."""

from dataclasses import dataclass

from lamina.dialects.config import Config


@dataclass(frozen=True)
class Vocabulary:
    """One family's names; an empty name is one that the family does not have.

    kubelet hands out tickets for `ticket`, so every container with a share has to name it; the node's allocatable
    amount of it is what kube-scheduler counts. It does not look for the others.
    """

    dialect: str
    ticket: str
    count: str = ""
    memory: str = ""
    memory_percentage: str = ""
    cores: str = ""
    priority: str = ""

    @property
    def all(self) -> tuple[str, ...]:
        """Every name, the count first."""
        named = (self.count, self.memory, self.memory_percentage, self.cores, self.priority)
        return tuple(name for name in named if name)

    @property
    def ignored_by_scheduler(self) -> tuple[str, ...]:
        """Names that kube-scheduler must not look for on nodes."""
        return tuple(name for name in self.all if name != self.ticket)


CCE = Vocabulary(
    dialect="cce",
    ticket="volcano.sh/gpu-mem.128Mi",
    memory="volcano.sh/gpu-mem.128Mi",
    cores="volcano.sh/gpu-core.percentage",
)


def hami(config: Config) -> Vocabulary:
    """HAMi's names, as configured."""
    keys = config.hami
    return Vocabulary(
        dialect="hami",
        ticket=keys.resource_count_name,
        count=keys.resource_count_name,
        memory=keys.resource_memory_name,
        memory_percentage=keys.resource_memory_percentage_name,
        cores=keys.resource_core_name,
        priority=keys.resource_priority_name,
    )


def volcano(config: Config) -> Vocabulary:
    """Volcano's names, as configured."""
    keys = config.volcano
    return Vocabulary(
        dialect="volcano",
        ticket=keys.resource_count_name,
        count=keys.resource_count_name,
        memory=keys.resource_memory_name,
        memory_percentage=keys.resource_memory_percentage_name,
        cores=keys.resource_core_name,
    )


def vocabularies(config: Config) -> tuple[Vocabulary, ...]:
    """All that are served."""
    return (hami(config), volcano(config), CCE)
