"""The health of GPUs over time: spans, their bounds, and what is said while nothing is known."""

import msgspec

from lamina.operations.dashboard.document import ClusterDocument, GpuCard, HealthSpan, NodeCard
from lamina.operations.dashboard.history import KEPT_S, MAX_SPANS, NOT_READY, HealthHistory


def document(*, healthy: bool = True, reason: str = "", ready: bool = True, uuid: str = "G") -> ClusterDocument:
    gpu = GpuCard(
        uuid=uuid, index=0, model="T4", memory_mib=9, capacity_mib=9, cores_capacity=100, slots=1, healthy=healthy,
        reason=reason,
    )  # fmt: skip
    return ClusterDocument(nodes={"n": NodeCard(name="n", ready=ready, gpus=(gpu,))})


def spans(shown: ClusterDocument) -> list[tuple[int, str, str]]:
    [gpu] = shown.nodes["n"].gpus
    return [msgspec.structs.astuple(span) for span in gpu.health]


def test_a_span_begins_where_something_changes() -> None:
    history = HealthHistory()
    history.noted(100.7, document())
    history.noted(110.0, document())
    history.noted(120.0, document(healthy=False, reason="XID 79"))
    history.noted(125.0, document(healthy=False, reason="XID 48"))
    shown = history.noted(130.0, document())
    assert spans(shown) == [
        (100, "healthy", ""), (120, "unhealthy", "XID 79"), (125, "unhealthy", "XID 48"), (130, "healthy", ""),
    ]  # fmt: skip


def test_what_is_not_known_is_no_health() -> None:
    history = HealthHistory()
    history.noted(100.0, document())
    history.noted(110.0, document(ready=False))
    history.noted(120.0, document())
    history.lose(130.0, "no answer")
    history.lose(135.0, "no answer")
    shown = history.noted(140.0, document())
    assert spans(shown) == [
        (100, "healthy", ""), (110, "unknown", NOT_READY), (120, "healthy", ""), (130, "unknown", "no answer"),
        (140, "healthy", ""),
    ]  # fmt: skip


def test_an_unhealthy_gpu_stays_so_on_a_node_that_is_not_ready() -> None:
    assert spans(HealthHistory().noted(1.0, document(healthy=False, reason="XID 79", ready=False))) == [
        (1, "unhealthy", "XID 79")
    ]


def test_spans_are_bounded_by_time_and_number() -> None:
    history = HealthHistory()
    for moment in range(2 * MAX_SPANS):
        shown = history.noted(float(moment), document(healthy=bool(moment % 2), reason="XID"))
    assert [span[0] for span in spans(shown)] == [*range(MAX_SPANS, 2 * MAX_SPANS)]
    shown = history.noted(2 * MAX_SPANS + KEPT_S, document())
    assert [span[0] for span in spans(shown)] == [2 * MAX_SPANS - 1]


def test_the_span_in_which_the_hours_begin_is_kept() -> None:
    history = HealthHistory()
    history.noted(0.0, document(healthy=False, reason="XID 79"))
    history.noted(KEPT_S, document())
    assert len(spans(history.noted(KEPT_S + 10, document()))) == 2
    assert len(spans(history.noted(2 * KEPT_S + 1, document()))) == 1


def test_a_clock_that_goes_back_makes_no_span_that_does() -> None:
    history = HealthHistory()
    history.noted(100.0, document())
    assert spans(history.noted(50.0, document(healthy=False)))[-1][0] == 100


def test_a_gpu_that_is_gone_is_forgotten() -> None:
    history = HealthHistory()
    history.noted(100.0, document())
    history.noted(110.0, document(uuid="H"))
    assert spans(history.noted(120.0, document())) == [(120, "healthy", "")]
    assert HealthSpan(120, "healthy") in history.noted(130.0, document()).nodes["n"].gpus[0].health
