"""CCE's names, and how its parts make up the dialect."""

from lamina.core.config import Config
from lamina.core.requests import PodRequest
from lamina.dialects.cce import metrics, parser
from lamina.dialects.protocol import Dialect, Listed, PodManifest, ResourceNames

NAMES = ResourceNames(
    ticket="volcano.sh/gpu-mem.128Mi",
    ticket_prefix="memory",
    ticket_mib=parser.UNIT_MIB,
    memory="volcano.sh/gpu-mem.128Mi",
    memory_unit_mib=parser.UNIT_MIB,
    cores="volcano.sh/gpu-core.percentage",
)


class CceDialect(Dialect):
    """The dialect of Huawei CCE's AI suite."""

    name = "cce"
    section = parser.CceSection
    schedulers = ("volcano",)
    listed_resources = Listed("cce")
    listed_metrics = Listed("cce")
    node_metrics = metrics.NODE

    def resource_names(self, config: Config) -> ResourceNames:
        return NAMES

    def guarded_prefixes(self, config: Config) -> tuple[str, ...]:
        return ("volcano.sh/gpu-",)

    def parse(self, pod: PodManifest, names: ResourceNames) -> PodRequest:
        return parser.parse(pod, names)
