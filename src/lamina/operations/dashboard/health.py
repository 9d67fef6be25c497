"""The health of GPUs over the last hours, as far as this process has seen it."""

from collections.abc import Mapping

import msgspec

from lamina.operations.dashboard.document import ClusterDocument, GpuCard, HealthSpan, NodeCard

KEPT_S = 6 * 3600
MOST_SPANS = 40
"""Of each GPU."""
HEALTHY, UNHEALTHY, UNKNOWN = "healthy", "unhealthy", "unknown"
NOT_READY = "its node is not ready"


class HealthHistory:
    """Spans of the GPUs that exist, by UUID. A clock that goes back makes no span that does."""

    def __init__(self) -> None:
        self._spans: Mapping[str, tuple[HealthSpan, ...]] = {}

    def noted(self, now: float, document: ClusterDocument) -> ClusterDocument:
        """Take in what the document says of health now. Returns it with the spans of each GPU."""
        spans: dict[str, tuple[HealthSpan, ...]] = {}

        def card(node: NodeCard, gpu: GpuCard) -> GpuCard:
            spans[gpu.uuid] = _with(self._spans.get(gpu.uuid, ()), int(now), *_state(node, gpu))
            return msgspec.structs.replace(gpu, health=spans[gpu.uuid])

        nodes = {
            name: msgspec.structs.replace(node, gpus=tuple(card(node, gpu) for gpu in node.gpus))
            for name, node in document.nodes.items()
        }
        self._spans = spans
        return msgspec.structs.replace(document, nodes=nodes)

    def lose(self, now: float, reason: str) -> None:
        """From now on nothing is known, until something is noted again."""
        self._spans = {uuid: _with(spans, int(now), UNKNOWN, reason) for uuid, spans in self._spans.items()}


def _state(node: NodeCard, gpu: GpuCard) -> tuple[str, str]:
    if not gpu.healthy:
        return UNHEALTHY, gpu.reason
    return (HEALTHY, "") if node.ready else (UNKNOWN, NOT_READY)


def _with(spans: tuple[HealthSpan, ...], now: int, state: str, reason: str) -> tuple[HealthSpan, ...]:
    if not spans or (spans[-1].state, spans[-1].reason) != (state, reason):
        spans = (*spans, HealthSpan(max(now, spans[-1].since) if spans else now, state, reason))
    # A span that ended before is of no interest: the next one has begun by then.
    ended = sum(after.since < now - KEPT_S for after in spans[1:])
    return spans[max(ended, len(spans) - MOST_SPANS) :]
