"""What is remembered of the use of shares: the last readings, of shares that exist."""

from lamina.operations.dashboard.document import ClusterDocument, PodCard, ShareCard
from lamina.operations.dashboard.history import MAX_USE_POINTS, SPARSE_EVERY_S, UseHistory


def document(used_mib: int | None, busy_percent: int | None = None, *, uid: str = "u") -> ClusterDocument:
    share = ShareCard(
        container="main", node="n", gpu="G", index=0, mode="quota", memory_mib=9, most_mib=9, physical_mib=9, cores=0,
        used_mib=used_mib, busy_percent=busy_percent,
    )  # fmt: skip
    return ClusterDocument(pods={uid: PodCard(namespace="team", name="p", state="running", shares=(share,))})


def test_readings_in_the_order_of_time() -> None:
    history = UseHistory()
    history.note(1.0, document(None))
    for moment, used, busy in ((5.0, 100, None), (10.0, None, None), (12.0, None, None), (15.0, 300, 40)):
        history.note(moment, document(used, busy))
    known = [(5.0, 100, None, 9, None), (15.0, 300, 40, 9, None)]
    assert history.of_pod("u") == {"main G": [known[0], (10.0, None, None, None, None), known[1]]}, "a gap is one point"


def test_only_the_last_readings_are_kept() -> None:
    history = UseHistory()
    for moment in range(MAX_USE_POINTS + 10):
        history.note(float(moment), document(moment))
    [points] = history.recent("u").values()
    assert [point.used_mib for point in points] == [*range(10, MAX_USE_POINTS + 10)]


def test_a_pod_that_is_gone_is_forgotten() -> None:
    history = UseHistory()
    history.note(1.0, document(100))
    history.note(2.0, document(200, uid="other"))
    history.note(3.0, document(300))
    assert history.of_pod("u") == {"main G": [(3.0, 300, None, 9, None)]} and history.of_pod("other") == {}


def test_few_of_the_hours_before_are_kept() -> None:
    history = UseHistory()
    for number in range(3 * SPARSE_EVERY_S // 5 + MAX_USE_POINTS):
        history.note(5.0 * number, document(number))
    moments = [point.at for point in history.of_pod("u")["main G"]]
    assert moments[:3] == [0.0, SPARSE_EVERY_S, 2 * SPARSE_EVERY_S] and moments == sorted(moments)
    assert len(moments) == 3 + MAX_USE_POINTS and len(history.recent("u")["main G"]) == MAX_USE_POINTS
    assert history.of_pod("nothing") == {} == history.recent("nothing") and history.of_gpu("nothing") == []


def test_a_clock_that_goes_back_adds_nothing() -> None:
    history = UseHistory()
    history.note(10.0, document(1))
    history.note(5.0, document(2))
    assert [point.used_mib for point in history.of_pod("u")["main G"]] == [1]
