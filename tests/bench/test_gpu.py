"""`make gpu-test` on a simulated GPU: its probes answer, a broken bound fails, a difference is listed, and nothing that
a probe does ends the test."""

import json
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import msgspec
import pytest

from bench.gpu import programs, turns
from bench.gpu.__main__ import PARTS, ROWS, attempt, counterpart, main
from bench.gpu.answers import facts
from bench.gpu.comparison import Result, alike, results, unanswered, without_computed, without_starved
from bench.gpu.mps_daemon import mps_daemon
from bench.gpu.page import page, summary
from bench.gpu.rows import Fact, Row
from bench.gpu.sides import Deadline, Side, side
from bench.gpu.turns import added, slowed
from bench.gpu.verified import verify_results
from lamina.agent.mps.clients import PIPE
from lamina.errors import BadInput, Outside

MODEL = "T4"
QUICK = [row for row in ROWS if row.part == "answers" and row.probe not in ("slices", "context")]
BOUNDED = Row(part="p", name="r", probe="x", facts=(Fact("share", "%", within=None, least=8, most=12),))


@pytest.fixture(scope="module")
def simulated() -> Iterator[Side]:
    with side("0", MODEL, Deadline(600)) as found:
        yield found


@pytest.mark.parametrize("row", QUICK, ids=lambda row: row.name)
def test_a_probe_gives_the_same_facts_twice(row: Row, simulated: Side) -> None:
    try:
        first = simulated.ask(row)
    except Outside as refused:
        pytest.skip(str(refused))
    assert first
    assert [each.fact for each in results(row, first, simulated.ask(row)) if each.is_finding] == []


def test_contexts_are_measured(simulated: Side) -> None:
    (row,) = (row for row in ROWS if row.probe == "context")
    got = simulated.ask(row)
    assert (got["first context"], got["by its process"], got["1 byte of memory"]) == (160, 160, 2)


def test_simgpu_answers_as_it_is_documented(simulated: Side) -> None:
    lookup, errors, *_ = (simulated.ask(row) for row in ROWS[:2])
    assert (lookup["known name, code"], lookup["known name, pointer"]) == (0, "a function")
    assert lookup["unknown name, pointer"] != "a function"
    assert (errors["before cuInit"], errors["wait without a context"], errors["more than there is"]) == (3, 201, 2)


def test_a_process_in_a_pid_namespace_is_not_listed_by_its_own_pid(simulated: Side) -> None:
    outside, inside = (row for row in ROWS if row.probe == "processes")
    assert simulated.ask(outside)["its own PID is listed"] is True
    try:
        assert simulated.ask(inside)["its own PID is listed"] is False
    except Outside as refused:
        pytest.skip(str(refused))


def test_programs_at_once_have_containers_of_their_own(simulated: Side) -> None:
    row = Row(part="compute", name="pair", probe="work", arguments=("1", "0.2", "100"), way="held", cores=(30, 60))
    assert list(simulated.ask(row)) == ["share of 30 %, number 1", "share of 60 %, number 2"]


def mps_row(name: str) -> Row:
    (row,) = (row for row in ROWS if row.part == "mps" and row.name == name)
    return row


def test_a_client_of_mps_has_the_limits_of_a_grant(simulated: Side) -> None:
    alone, held = (
        simulated.ask(mps_row(f"a client {how}")) for how in ("by NVIDIA's variables alone", "with the facade")
    )
    assert alone["total"] > 4096 and held["total"] == 4096
    for found in (alone, held):
        assert 3500 < found["taken"] <= 4096 and found["error at the limit"] == 2
        assert (found["multiprocessors"], found["it is listed by its PID"]) == (12, True), "of 40"
    assert alone["a context, of the process"] == 4096 - alone["free at first"] < alone["a context, of the GPU"]


@pytest.mark.parametrize("what", ["removed", "raised"])
def test_a_client_of_mps_keeps_its_part_of_the_processors(what: str, simulated: Side) -> None:
    found = simulated.ask(mps_row(f"30 % of the processors, the variable {what}"))
    assert found["a kernel, part of the native speed"] < 60


def test_daemons_of_mps_end_with_their_row(simulated: Side) -> None:
    with mps_daemon(simulated.place) as variables:
        home = Path(variables[PIPE]).parent
        assert (home / "pipe" / "control").exists()
    assert not home.exists()


def test_a_share_that_is_not_enforced_breaks_its_bound() -> None:
    """The null control: the facade is left out."""
    fact = Fact("share of the GPU's time", "%", within=None, least=8, most=12)
    row = Row(part="compute", name="10 %", probe="work", arguments=("1", "0.5", "100"), facts=(fact,), way="held",
              cores=(10,))  # fmt: skip
    with side("0", MODEL, Deadline(600), enforced=False) as unheld:
        (result,) = results(row, unheld.ask(row), None)
    assert result.card > 12 and result.verdict == "FAILED"


def test_what_the_facade_adds_is_native_next_to_ours(simulated: Side) -> None:
    got = simulated.ask(Row(part="cost", name="launch", probe="launching", way="both"))
    assert {name.rpartition(", ")[2] for name in got} == {"native us", "added us", "added"}


def test_added_is_the_median_over_pairs_of_rounds() -> None:
    native, ours = [{"step": 10.0}, {"step": 20.0}, {"step": 10.0}], [{"step": 11.0}, {"step": 26.0}, {"step": 10.0}]
    assert added(native, ours) == {"step, native us": 10.0, "step, added us": 1.0, "step, added": 10.0}


def test_what_kernels_compute_is_not_judged_on_a_simulated_gpu() -> None:
    row = Row(part="p", name="r", probe="x", facts=(Fact("sum", within=None, least=5, most=5, computed=True),))
    found = results(row, {"sum": 0, "total": 1}, None)
    assert [each.verdict for each in found] == ["FAILED", "reported"]
    assert [each.verdict for each in without_computed(row, found)] == ["not tested", "reported"]


def test_the_speed_under_a_limit_is_a_part_of_the_native_one(simulated: Side) -> None:
    native, ours = [{"step": 10.0}], [{"step": 40.0}]
    assert slowed(native, ours) == {"step, native us": 10.0, "step, part of the native speed": 25.0}
    row = Row(part="clients", name="steps", probe="steps", arguments=("100",), way="slowed", cores=(50,))
    assert set(simulated.ask(row)) == {"step, native us", "step, part of the native speed"}


def test_rows_of_overhead_say_what_the_call_takes_without_lamina() -> None:
    row = {"unit": "ns", "measured": 3751.0, "limit": 3457.0, "verdict": "reported", "note": "limit is ..."}
    (result,) = verify_results({("overhead", "cuLaunchKernel"): row | {"check": "overhead"}}, None)
    assert result.note == "3,457 ns without Lamina"


COUNTING = "import sys; print('ready', flush=True)\nfor line in sys.stdin: print('{\"n\": %d}' % len(line), flush=True)"


def test_programs_in_turns_answer_once_a_round() -> None:
    command = [sys.executable, "-c", COUNTING]
    native, ours = turns.in_turns(command, programs.variables(), programs.variables(), 60, pairs=2, rounds=3)
    assert native == ours == [{"n": 1}] * 6


ASKED = {
    "ends before it is asked": ("raise SystemExit('no driver')", "it ended with 1: no driver"),
    "ends without an answer": ("print('ready'); input()", "it printed no facts but 'nothing'"),
    "answers with no facts": ("print('ready', flush=True); input(); print(1)", "it printed no facts but '1'"),
    "says something else": ("print('{}', flush=True); input()", "it ended with 0: {}"),
    "is never ready": ("import threading; threading.Event().wait()", "it did not answer within 2 s"),
    "does not answer": (
        "print('ready', flush=True); import threading; threading.Event().wait()",
        "it did not answer within 2 s",
    ),
}


@pytest.mark.parametrize("case", ASKED)
def test_a_program_in_turns_that_fails_is_one_sentence(case: str) -> None:
    script, sentence = ASKED[case]
    with pytest.raises(Outside, match=f"^{sentence}$"):
        turns.in_turns([sys.executable, "-c", script], programs.variables(), programs.variables(), 2, 1, 1)


PROGRAMS = {
    "ends with an error": ("raise SystemExit('no driver')", "it ended with 1: no driver"),
    "prints nothing": ("pass", "it printed no facts but 'nothing'"),
    "prints no JSON": ("print('ok')", "it printed no facts but 'ok'"),
    "prints a list": ("print([1])", r"it printed no facts but '\[1\]'"),
    "is killed": ("import os; os.kill(os.getpid(), 9)", "it ended with -9: nothing"),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_a_probe_that_fails_is_one_sentence(case: str) -> None:
    script, sentence = PROGRAMS[case]
    with pytest.raises(Outside, match=f"^{sentence}$"):
        facts(*programs.output(programs.start([sys.executable, "-c", script], programs.variables()), 60))


def test_a_probe_that_hangs_ends_with_all_that_it_started() -> None:
    """Its child has the same pipe, whose end `output` waits for."""
    script = """
import subprocess, sys, threading
subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
threading.Event().wait()
"""
    program = programs.start([sys.executable, "-c", script], programs.variables())
    with pytest.raises(Outside, match=r"^it did not end within 2 s$"):
        programs.output(program, 2)
    assert program.returncode == -9


class Broken(Side):
    """A side whose rows fail in an unexpected way."""

    def __init__(self) -> None:
        """There is no place for it."""

    def ask(self, row: Row) -> dict[str, object]:
        raise KeyError(row.name)


def test_a_row_that_fails_unexpectedly_does_not_end_the_test() -> None:
    (result,) = results(BOUNDED, attempt(Broken(), BOUNDED), None)
    assert (result.verdict, result.note, result.has_failed) == ("no answer", "KeyError: 'r'", True)


def test_no_row_begins_when_the_time_is_over() -> None:
    seconds = count(0, 30)
    deadline = Deadline(90, lambda: next(seconds))
    assert [deadline.allows(40), deadline.allows(40)] == [40, 30]
    with pytest.raises(Outside) as raised:
        deadline.allows(40)
    result = unanswered("p", "r", str(raised.value))
    assert (result.verdict, result.has_failed) == ("not tested", False)


@pytest.mark.parametrize(
    ("share", "verdict"), [(7.9, "FAILED"), (8, "ok"), (12, "ok"), (12.1, "FAILED"), ("x", "FAILED"), (None, "FAILED")]
)
def test_bounds_hold_on_both_sides(share: float | str | None, verdict: str) -> None:
    (result,) = results(BOUNDED, {"share": share}, None)
    assert result.verdict == verdict


@pytest.mark.parametrize(
    ("unlimited", "share", "verdict"), [(95, 5, "FAILED"), (80, 5, "not tested"), (80, 13, "FAILED"), (80, 10, "ok")]
)
def test_too_little_is_no_failure_where_the_gpu_cannot_be_kept_busy(unlimited: int, share: int, verdict: str) -> None:
    row = msgspec.structs.replace(BOUNDED, after="no limit")
    before = [Result(part="p", row="no limit", fact="share", card=unlimited, verdict="ok")]
    (result,) = without_starved(row, results(row, {"share": share}, None), before)
    assert result.verdict == verdict


@pytest.mark.parametrize(
    ("together", "share", "verdict"), [(80, 7, "ok"), (80, 6, "FAILED"), (120, 7, "FAILED"), (80, 13, "FAILED")]
)
def test_programs_at_once_have_to_get_their_part_of_what_two_get_without_limits(
    together: int, share: int, verdict: str
) -> None:
    row = msgspec.structs.replace(BOUNDED, after="no limits")
    before = [Result(part="p", row="no limits", fact=f"program {n}", card=together / 2, verdict="ok") for n in (1, 2)]
    (result,) = without_starved(row, results(row, {"share": share}, None), before)
    assert result.verdict == verdict


def test_without_limits_programs_at_once_need_no_container(simulated: Side) -> None:
    row = Row(part="compute", name="two", probe="work", arguments=("1", "0.2", "100"), cores=(0, 0))
    assert list(simulated.ask(row)) == ["program 1", "program 2"]


def test_a_client_that_is_not_installed_is_not_tested(simulated: Side) -> None:
    (result,) = results(BOUNDED, attempt(simulated, msgspec.structs.replace(BOUNDED, needs="no_such_client")), None)
    assert (result.verdict, result.has_failed) == ("not tested", False)
    assert result.note.endswith("No module named 'no_such_client'")


def test_a_share_that_is_no_number_is_not_ok() -> None:
    (result,) = results(BOUNDED, {"share": float("nan")}, None)
    assert result.verdict == "FAILED"


@pytest.mark.parametrize(
    ("card", "simulated", "within", "same"),
    [
        (500, 500, 0.0, True), (500, 0, 0.0, False), ("NULL", "as it was", 0.0, False), (412.0, 500.0, 0.25, True),
        (412.0, 520.0, 0.25, False), (None, 5.0, 0.25, False), (True, False, 0.0, False),
    ],
)  # fmt: skip
def test_answers_are_compared(card: float, simulated: float, within: float, same: bool) -> None:
    assert alike(card, simulated, within) is same


def test_what_only_one_side_answers_is_a_finding() -> None:
    row = Row(part="answers", name="r", probe="x")
    found = {each.fact: each for each in results(row, {"a": 1, "b": 2}, {"a": 1, "c": 3})}
    assert {name for name, each in found.items() if each.is_finding} == {"b", "c"}
    assert not any(each.has_failed for each in found.values())


def test_rows_of_verify_keep_their_verdict_and_compare_it() -> None:
    def row(verdict: str, check: str = "memory") -> dict[tuple[str, str], dict[str, object]]:
        return {(check, "w"): {"check": check, "unit": "MiB", "measured": 5.0, "verdict": verdict, "note": ""}}

    (same,) = verify_results(row("ok"), row("ok"))
    (differs,) = verify_results(row("FAILED"), row("ok"))
    (skipped,) = verify_results(row("not tested"), row("ok"))
    (compute,) = verify_results(row("ok", "compute"), row("FAILED", "compute"))
    assert [each.is_finding for each in (same, differs, skipped, compute)] == [False, True, False, False]
    assert [each.has_failed for each in (same, differs, skipped, compute)] == [False, True, False, False]


@pytest.mark.parametrize(
    ("cuda", "name", "expected"),
    [("12.7", "Tesla T4", "T4@12.6"), ("13.1", "NVIDIA H200", "H200@13.0"), ("11.2", "Tesla T4", "T4@13.0")],
)
def test_a_card_is_compared_with_its_model_and_nearest_driver(cuda: str, name: str, expected: str) -> None:
    assert counterpart({"CUDA": cuda}, name) == expected


def test_a_card_that_simgpu_does_not_know_is_not_compared() -> None:
    with pytest.raises(BadInput):
        counterpart({"CUDA": "13.0"}, "NVIDIA GeForce GT 1010")


def test_the_page_escapes_what_programs_said_and_lists_findings() -> None:
    bad = Result(part="p", row="<b>", fact="f", verdict="no answer", note="<script>alert(1)</script>")
    finding = Result(part="p", row="r", fact="f", card=1, simulated=2, verdict="reported", same=False)
    html = page({"GPU": "<T4>"}, [bad, finding])
    assert "<script>" not in html and "&lt;T4&gt;" in html
    assert not [word for word in ("http:", "https:", "src=", "@import") if word in html]
    assert summary([bad, finding]) == "2 facts: 1 failed, 0 not tested, 1 differ from the simulated driver"


def test_rows_have_names_of_their_own_and_probes_that_exist() -> None:
    assert len({(row.part, row.name) for row in ROWS}) == len(ROWS)
    assert {row.part for row in ROWS} | {"verify"} == set(PARTS)
    probes = {probe for row in ROWS for probe in (row.probe, row.simulated_probe) if probe}
    assert [name for name in probes if not (programs.ROOT / "bench/gpu/probes" / f"{name}.py").is_file()] == []


def test_without_a_gpu_it_says_so_and_ends_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_driver() -> Path:
        raise Outside("this machine has no NVIDIA driver")

    monkeypatch.setattr("lamina.enforcement.run_machine.find_driver", no_driver)
    assert main(["--out", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err == "this machine has no NVIDIA driver; use --simulate MODEL\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["anwsers"], ["--minutes", "0"], ["--minutes", "nan"], ["--no-such-option"]])
def test_wrong_options_end_with_2(words: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(words)
    assert raised.value.code == 2


def test_an_unwritable_place_is_reported_before_anything_is_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--simulate", "no such model", "--out", str(tmp_path / "nowhere" / "x")]) == 2
    assert "cannot write --out" in capsys.readouterr().err


def test_the_command_writes_both_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.gpu.__main__.ROWS", [row for row in ROWS if row.probe in ("lookup", "errors")])
    assert main(["answers", "--simulate", MODEL, "--out", str(tmp_path / "x")]) == 0
    written = json.loads((tmp_path / "x.json").read_text())
    assert written["about"]["GPU"] == "Tesla T4" and written["about"]["compared with"] == "T4@13.0"
    assert {each["row"] for each in written["results"]} == {"cuGetProcAddress", "error codes"}
    assert "0 differ" in (tmp_path / "x.html").read_text()
    assert "wrote" in capsys.readouterr().out


def test_settings_of_the_card_are_not_touched() -> None:
    """Of NVML, probes call only what reads."""
    probes = programs.ROOT / "bench" / "gpu"
    assert [path.name for path in probes.rglob("*.py") if "nvmlDeviceSet" in path.read_text()] == []
