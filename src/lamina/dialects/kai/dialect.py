"""The names of KAI's dialect, and how its parts make up the dialect."""

from collections.abc import Iterator

from lamina.dialects.containers import ContainerManifest
from lamina.dialects.kai import annotations, parser
from lamina.dialects.patches import PatchOperation
from lamina.dialects.protocol import Dialect, PodManifest, ResourceNames, WantedSize
from lamina.model.config import Config
from lamina.model.requests import PodRequest

NAMES = ResourceNames(ticket="lamina.dev/gpu-shares", ticket_prefix="share", count="lamina.dev/gpu-shares")
"""KAI has no resource. Admission fills this one in, for kube-scheduler and kubelet."""


class KaiDialect(Dialect):
    """The dialect of KAI Scheduler and Run:ai."""

    name = "kai"
    schedulers = ("kai-scheduler", "runai-scheduler")
    annotation_prefixes = annotations.REQUESTING

    def resource_names(self, config: Config) -> ResourceNames:
        return NAMES

    def parse(self, pod: PodManifest, names: ResourceNames) -> PodRequest:
        return parser.parse(pod, names)

    def with_size(
        self, pod: PodManifest, container: ContainerManifest, size: WantedSize, names: ResourceNames
    ) -> Iterator[PatchOperation]:
        yield from annotations.write_size(pod.annotations, container.name, size)
