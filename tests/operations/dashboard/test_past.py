"""The past of pods and GPUs: from Prometheus where it answers, and what was seen where it lies or is slow."""

import asyncio

import msgspec
import pytest

from lamina.errors import BadInput
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.past import KEPT_S, MAX_SERIES, STEP_S, TIMEOUT_S, Past, prometheus_at
from lamina.ports.clock import FakeClock
from lamina.ports.prometheus import FakePrometheus, Series
from lamina.report.cluster_use import GpuLoad
from tests.operations.dashboard.pages import small
from tests.operations.dashboard.uses import use_of

MIB = 2.0**20
SHARE = {"container": "main", "gpu": "GPU-n-0"}
USED, BUSY, LIMIT, PEAK = (
    f"lamina_container_{each}" for each in ("memory_used", "utilization", "memory_limit", "memory_peak")
)


def board(clock: FakeClock) -> Board:
    made = Board()
    made.post(small(), clock.wall())
    use = use_of("team", "web", "main", used_mib=100, busy_percent=7.0, peak_mib=120)
    use.gpus["GPU-n-0"] = GpuLoad(used_mib=500, busy_percent=8.0, node="n")
    made.use(use, "", clock.wall() + 1)
    return made


async def test_without_prometheus_it_is_what_was_seen() -> None:
    clock = FakeClock()
    past, now = Past(seen := board(clock), clock), clock.wall() + 1
    pod = await past.pod("u1", seen.current.document.pods["u1"])
    assert (pod.source, pod.problem, pod.shares) == ("page", "", {"main GPU-n-0": [(now, 100, 7, 4000, 120)]})
    gpu = await past.gpu("GPU-n-0")
    assert gpu.points == [(now, 500, 8, None, None)] and [each.name for each in gpu.holders] == ["team/web"]


async def test_prometheus_knows_more() -> None:
    clock = FakeClock()
    end = float(int(clock.wall()) // STEP_S * STEP_S)
    at = end - STEP_S
    prometheus = FakePrometheus(
        {
            USED: [Series(SHARE, [(at, 30 * MIB), (end, 40 * MIB)])],
            BUSY: [Series(SHARE, [(end, 12.4)])],
            LIMIT: [Series(SHARE, [(end, 90 * MIB)])],
            PEAK: [],
        }
    )
    pod = await Past(seen := board(clock), clock, prometheus).pod("u1", seen.current.document.pods["u1"])
    assert pod.source == "prometheus"
    assert pod.shares == {"main GPU-n-0": [(at, 30, None, None, None), (end, 40, 12, 90, None)]}
    assert {(each.start, each.end, each.step) for each in prometheus.asked} == {(end - KEPT_S, end, STEP_S)}
    assert '{namespace="team",pod="web"}' in prometheus.asked[0].query


async def test_who_held_a_gpu_by_prometheus() -> None:
    clock = FakeClock()
    end = float(int(clock.wall()) // STEP_S * STEP_S)
    held = [
        Series({"namespace": "team", "pod": "web"}, [(end - STEP_S, 4 * MIB), (end, 4 * MIB)]),
        Series({"namespace": "team", "pod": "gone"}, [(end - 50 * STEP_S, 8 * MIB)]),
    ]
    prometheus = FakePrometheus({LIMIT: held, "lamina_gpu_memory_used": [Series({}, [(end, 5 * MIB)])]})
    found = await Past(board(clock), clock, prometheus).gpu("GPU-n-0")
    assert found.source == "prometheus" and found.points == [(end, 5, None, None, None)]
    spans = {each.name: (each.pod, each.memory_mib, each.since, each.until) for each in found.holders}
    assert spans["team/web"] == ("u1", 4, end - STEP_S, None)
    assert spans["team/gone"] == ("", 8, end - 50 * STEP_S, end - 50 * STEP_S)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([Series(SHARE, [(0.0, -1.0)])], "it says that -1 bytes of a GPU are in use"),
        ([Series(SHARE, [(0.0, 1e30)])], "it says that 1e\\+30 bytes"),
        ([Series({"gpu": str(number)}, []) for number in range(MAX_SERIES + 1)], f"more than {MAX_SERIES} series"),
    ],
)
async def test_what_no_gpu_can_be_is_named_and_the_page_goes_on(answer: list[Series], sentence: str) -> None:
    clock = FakeClock()
    found = await Past(seen := board(clock), clock, FakePrometheus({USED: answer})).pod(
        "u1", seen.current.document.pods["u1"]
    )
    assert found.source == "page" and set(found.shares) == {"main GPU-n-0"}
    with pytest.raises(AssertionError, match=sentence):
        raise AssertionError(found.problem)


async def test_a_prometheus_that_is_down_or_knows_nothing() -> None:
    clock, prometheus = FakeClock(), FakePrometheus()
    past = Past(seen := board(clock), clock, prometheus)
    assert (await past.gpu("GPU-n-0")).source == "page" and (await past.gpu("GPU-n-0")).problem == ""
    prometheus.problem = "http://p cannot be read: refused"
    assert (await past.gpu("GPU-n-0")).problem.endswith("seen itself: http://p cannot be read: refused")
    pod = await past.pod(
        "u1", msgspec.structs.replace(seen.current.document.pods["u1"], created=int(clock.wall()) + 99)
    )
    assert pod.source == "page"


class Silent(FakePrometheus):
    async def query_range(self, query: str, start: float, end: float, step: int) -> list[Series]:
        await asyncio.Event().wait()
        return []


async def test_a_slow_prometheus_is_not_waited_for() -> None:
    clock = FakeClock()
    asked = asyncio.ensure_future(Past(board(clock), clock, Silent()).gpu("GPU-n-0"))
    while not asked.done():
        await asyncio.sleep(0)
        await clock.advance(TIMEOUT_S)
    found = await asked
    assert found.source == "page" and "has not answered within 5 s" in found.problem and found.points


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(BadInput, match="--prometheus must be an address"):
        prometheus_at("prometheus:9090")
