"""The names of KAI's dialect, and how its parts make up the dialect."""

from collections.abc import Iterator

from lamina.core.config import Config
from lamina.core.requests import PodRequest
from lamina.dialects.containers import ContainerManifest
from lamina.dialects.kai import annotations, parser
from lamina.dialects.patches import PatchOperation, add_metadata
from lamina.dialects.protocol import Dialect, PodManifest, ResourceNames, WantedSize

NAMES = ResourceNames(ticket="lamina.dev/gpu-shares", ticket_prefix="share", count="lamina.dev/gpu-shares")
"""KAI has no resource. Admission fills this one in, for kube-scheduler and kubelet."""


class KaiDialect(Dialect):
    """The dialect of KAI Scheduler and Run:ai."""

    name = "kai"
    section = parser.KaiSection
    schedulers = ("kai-scheduler", "runai-scheduler")
    annotation_prefixes = annotations.REQUESTING

    def resource_names(self, config: Config) -> ResourceNames:
        return NAMES

    def requests_by(self, key: str) -> bool:
        return key in (annotations.FRACTION, annotations.MEMORY) or key.startswith(annotations.OF_CONTAINER)

    def fill_defaults(self, pod: PodManifest, request: PodRequest, names: ResourceNames) -> Iterator[PatchOperation]:
        """The tickets, and the name of the container: others may add containers in front of it afterwards."""
        yield from super().fill_defaults(pod, request, names)
        if annotations.read_part(pod.annotations) is not None and annotations.CONTAINER not in pod.annotations:
            chosen = {annotations.CONTAINER: parser.chosen_container(pod)}
            yield from add_metadata("annotations", pod.annotations, chosen)

    def parse(self, pod: PodManifest, names: ResourceNames) -> PodRequest:
        return parser.parse(pod, names)

    def with_size(
        self, pod: PodManifest, container: ContainerManifest, size: WantedSize, names: ResourceNames
    ) -> Iterator[PatchOperation]:
        yield from annotations.write_size(pod.annotations, container.name, size)
