"""Who held what of a GPU: spans that begin and end with what was seen."""

from lamina.operations.dashboard.document import ClusterDocument, GpuPart
from lamina.operations.dashboard.history import KEPT_S
from lamina.operations.dashboard.holders import MAX_ENDED, HolderHistory, holders_of
from tests.operations.dashboard.pages import gpu, node


def holding(*parts: tuple[str, int]) -> ClusterDocument:
    held = [
        GpuPart(pod=f"u{name}", name=f"team/{name}", namespace="team", memory_mib=mib, cores=0) for name, mib in parts
    ]
    return ClusterDocument(nodes={"n": node("n", gpu("n", 0, *held))})


def spans(history: HolderHistory) -> list[tuple[str, int, float, float | None]]:
    return [(each.name, each.memory_mib, each.since, each.until) for each in history.of_gpu("GPU-n-0")]


def test_a_share_lasts_until_it_is_gone_or_another_size() -> None:
    history = HolderHistory()
    for now, parts in ((10.0, [("a", 1), ("b", 1)]), (20.0, [("a", 1), ("b", 1)]), (30.0, [("a", 2)])):
        history.note(now, holding(*parts))
    assert spans(history) == [
        ("team/a", 1, 10.0, 30.0),
        ("team/b", 1, 10.0, 30.0),
        ("team/a", 2, 30.0, None),
    ]
    assert history.of_gpu("other") == []


def test_a_clock_that_goes_back_ends_nothing_before_it_began() -> None:
    history = HolderHistory()
    history.note(100.0, holding(("a", 1)))
    history.note(50.0, holding())
    assert spans(history) == [("team/a", 1, 100.0, 100.0)]


def test_old_and_many_spans_are_forgotten_as_are_gpus_that_are_gone() -> None:
    history = HolderHistory()
    for number in range(MAX_ENDED + 5):
        history.note(float(number), holding((str(number), 1)))
    assert len(history.of_gpu("GPU-n-0")) == MAX_ENDED + 1
    history.note(2.0 * KEPT_S, holding(("last", 1)))
    history.note(3.0 * KEPT_S + 1, holding(("last", 1)))
    assert [name for name, *_ in spans(history)] == ["team/last"]
    history.note(4.0 * KEPT_S, ClusterDocument())
    assert spans(history) == []


def test_readings_with_gaps_and_sizes_are_spans() -> None:
    readings = {("team", "a"): [(0.0, 5), (60.0, 5), (120.0, 7), (600.0, 7)]}
    found = [
        (each.pod, each.memory_mib, each.since, each.until) for each in holders_of(readings, {"team/a": "u"}, 180.0)
    ]
    assert found == [("u", 5, 0.0, 60.0), ("u", 7, 120.0, 120.0), ("u", 7, 600.0, 600.0)]
    assert list(holders_of({("team", "a"): []}, {}, 1.0)) == []
