"""The facade's benchmark measures what it says: its programs work on both sides, and its controls can fail."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.facade import calls, holding, starting
from bench.machine import CONTEXT_MIB, build, machine, workers
from lamina.core.cards import card


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("programs")
    return {name: build(folder, name) for name in ("calls", "start", "hold")}


@pytest.mark.parametrize("call", ["launch", *calls.KINDS, *calls.CHEAP, "proc-address"])
def test_a_call_is_timed_on_both_sides(call: str, programs: dict[str, Path]) -> None:
    with machine() as bench, calls.sides(programs["calls"], bench) as groups:
        for group in groups.values():
            ((operations, cpu_ns),) = calls.ask(group, call, live=3, span=0.001)
            assert operations >= 256 and cpu_ns > 0


@pytest.mark.parametrize("kind", holding.KINDS)
def test_nothing_is_held_over_a_limit_and_all_is_without_one(kind: str, programs: dict[str, Path]) -> None:
    with machine() as bench:
        assert holding._over_mib(programs["hold"], bench.ours(holding.LIMIT_MIB), kind) == 0
        over = holding._over_mib(programs["hold"], bench.ours(), kind)
        assert over > card("H200").memory_mib - holding.LIMIT_MIB - 128


def test_contexts_are_counted(programs: dict[str, Path]) -> None:
    with machine() as bench, workers(3, [programs["start"], "ready"], bench.ours(4 * CONTEXT_MIB)) as group:
        for worker in group:
            worker.say("0")
            worker.receive()
        assert bench.state().contexts_made == 3
        assert starting._init_us(bench.ours(), programs["start"]) > 0
        assert bench.state().contexts_made == 3


def test_an_unknown_part_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.facade", "cals"], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 2 and "there is no part 'cals'" in done.stderr
