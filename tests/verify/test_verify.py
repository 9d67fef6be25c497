"""`lamina verify` on a simulated GPU: limits that hold are well, and limits that no one holds are found out."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lamina.cli.main import app
from lamina.core.quantities import MIB, MemoryAmount
from lamina.errors import BadInput, LaminaError
from lamina.operations.verify.compute import MIN_KERNEL, POINTS, compute
from lamina.operations.verify.escapes import HELD, KNOWN, escapes
from lamina.operations.verify.machine import Site, site
from lamina.operations.verify.memory import KINDS, memory
from lamina.operations.verify.overhead import CALLS, overhead
from lamina.operations.verify.report import cells, charts, judged, untested
from lamina.operations.verify.run import facts, verify
from lamina.operations.verify.views import views

MODEL = "T4"
LIMIT = 1024
EARLY = "so the driver did not run them in full"


@pytest.fixture
def held() -> Iterator[Site]:
    with site("0", MODEL) as found:
        yield found


@pytest.fixture
def unheld() -> Iterator[Site]:
    """The null control: the facade is left out."""
    with site("0", MODEL, enforced=False) as found:
        yield found


def test_memory_that_is_held_is_found_to_be_held(held: Site) -> None:
    rows = list(memory(held, LIMIT))
    assert [row.verdict for row in rows] == ["ok"] * 2 * len(KINDS), rows
    errors = {row.what: row.error for row in rows if row.error is not None}
    for what in ("plain, as asked for", "plain, as the driver counts", "managed, as asked for"):
        assert -2 * MIB < errors[what] <= 0
    assert -2 * MIB < errors["small, as the driver counts"] <= 0


def test_memory_without_a_limit_is_detected(unheld: Site) -> None:
    rows = list(memory(unheld, LIMIT))
    assert [row.verdict for row in rows] == ["FAILED"] * 2 * len(KINDS), rows


def test_views_show_the_limit(held: Site) -> None:
    assert {row.what: row.verdict for row in views(held, LIMIT)} == {
        "cuMemGetInfo, total": "ok", "cuDeviceTotalMem, total": "ok", "NVML, total": "ok", "devices": "ok",
        "NVML devices": "ok", "processes that NVML lists": "ok", "lamina-smi, total": "ok",
        "nvidia-smi, total": "not tested",
    }  # fmt: skip


def test_views_that_show_the_whole_card_are_detected(unheld: Site) -> None:
    failed = {row.what for row in views(unheld, LIMIT) if row.verdict == "FAILED"}
    assert failed == {"cuMemGetInfo, total", "cuDeviceTotalMem, total", "NVML, total", "lamina-smi, total"}


def test_shares_that_are_not_enforced_are_detected(unheld: Site) -> None:
    first, *rows = compute(unheld, [20], 0.5)
    if first.measured is not None and first.measured < 90:
        pytest.skip("this machine is too busy to keep even a simulated GPU busy")
    assert first.what == "without limits"
    assert [(row.limit, row.verdict) for row in rows] == [(20, "FAILED"), (30, "FAILED"), (60, "FAILED")], rows


def test_shares_that_are_held_are_never_passed(held: Site) -> None:
    for row in compute(held, [20], 1):
        if row.limit is not None and row.measured is not None:
            assert row.measured < row.limit + POINTS, row


class Answering(Site):
    """A site whose tenants answer this."""

    def ask(self, variables: dict[str, str], *arguments: str) -> dict[str, float]:
        return ANSWERS[arguments[0]]


ANSWERS: dict[str, dict[str, float]] = {}


@pytest.fixture
def answering(held: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    def start(variables: dict[str, str], *arguments: str) -> tuple[str, ...]:
        raise AssertionError("without limits nothing was measured, so no pair is started")

    monkeypatch.setattr(Answering, "start", start)
    return Answering(**{name: getattr(held, name) for name in held.__dataclass_fields__})


@pytest.mark.parametrize(
    ("percent", "kernel_ms", "verdict", "note"),
    [
        # A driver that takes every launch and runs none.
        (
            112_682.0,
            0.00089,
            "not tested",
            f"kernels of 1 ms ended after 0.00089 ms, {EARLY}",
        ),
        (99.0, 0.89, "not tested", f"kernels of 1 ms ended after 0.89 ms, {EARLY}"),
        (
            99.0,
            float("nan"),
            "not tested",
            f"kernels of 1 ms ended after nan ms, {EARLY}",
        ),
        (102.1, 1.0, "FAILED", "this is no share of the GPU's time, so none can be measured here"),
        (float("nan"), 1.0, "FAILED", "this is no share of the GPU's time, so none can be measured here"),
        (89.9, 1.0, "not tested", "others use this GPU, or its processors are too busy to feed it"),
    ],
)
def test_time_that_cannot_be_measured_is_never_ok(
    answering: Site, percent: float, kernel_ms: float, verdict: str, note: str
) -> None:
    ANSWERS["compute"] = {"percent": percent, "kernel_ms": kernel_ms}
    first, rest = compute(answering, [20], 1)
    assert (first.what, first.verdict, first.note) == ("without limits", verdict, note)
    assert (rest.measured, rest.verdict, rest.note) == (None, "not tested", note)


@pytest.mark.parametrize(("percent", "verdict"), [(17.9, "FAILED"), (18, "ok"), (22, "ok"), (22.1, "FAILED")])
def test_a_share_is_judged_on_both_sides(
    answering: Site, monkeypatch: pytest.MonkeyPatch, percent: float, verdict: str
) -> None:
    answers = iter([{"percent": 98.0, "kernel_ms": 1.0}, {"percent": percent, "kernel_ms": 1.0}])
    monkeypatch.setattr(Answering, "ask", lambda *_: next(answers))
    rows = compute(answering, [20], 1)
    assert next(rows).verdict == "ok"
    assert next(rows).verdict == verdict


def test_a_share_of_kernels_that_end_early_is_not_ok(answering: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([{"percent": 98.0, "kernel_ms": 1.0}, {"percent": 20.0, "kernel_ms": 0.2}])
    monkeypatch.setattr(Answering, "ask", lambda *_: next(answers))
    rows = compute(answering, [20], 1)
    assert next(rows).verdict == "ok"
    share = next(rows)
    assert (share.measured, share.verdict, share.note) == (
        None, "not tested", f"kernels of 1 ms ended after 0.2 ms, {EARLY}"
    )  # fmt: skip


def test_a_tenant_measures_how_long_its_kernels_take(unheld: Site) -> None:
    answer = unheld.ask(unheld.free(), "compute", "1", "0", "0.5")
    assert answer["kernel_ms"] >= MIN_KERNEL


def test_an_escape_that_is_refused_below_the_limit_is_not_ok(answering: Site) -> None:
    ANSWERS["escape"] = {"context": 160 * MIB, "got": 0}
    rows = {row.what: row for row in escapes(answering, LIMIT)}
    assert {(rows[way].measured, rows[way].verdict, rows[way].note) for way in (*HELD, *KNOWN)} == {
        (160, "FAILED", "this was refused before it reached the limit")
    }


def test_escapes_are_stopped_or_known(held: Site) -> None:
    verdicts = {row.what: row.verdict for row in escapes(held, LIMIT)}
    assert verdicts == dict.fromkeys(HELD, "ok") | dict.fromkeys(KNOWN, "known") | {
        "a container's own files": "not tested"
    }


def test_escapes_that_succeed_are_detected(unheld: Site) -> None:
    verdicts = {row.what: row.verdict for row in escapes(unheld, LIMIT)}
    assert {verdicts[way] for way in HELD} == {"FAILED"}


def test_overhead_has_a_figure_for_each_call(held: Site) -> None:
    rows = list(overhead(held, 1))
    assert [row.what for row in rows] == list(CALLS.values())
    assert all(row.measured and row.limit for row in rows)
    assert {row.verdict for row in rows} == {"reported"}


@pytest.mark.parametrize(
    ("measured", "verdict"), [(8, "ok"), (7.9, "FAILED"), (11, "ok"), (11.1, "FAILED"), (float("nan"), "FAILED")]
)
def test_an_error_is_signed_and_bounded_on_both_sides(measured: float, verdict: str) -> None:
    row = judged("compute", "x", "%", 10, measured, below=2, above=1)
    assert row.verdict == verdict
    assert row.error == pytest.approx(measured - 10, nan_ok=True)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"shares": (0,)}, "--shares must be integers from 1 to 99, got 0"),
        ({"shares": (50, 100)}, "--shares must be integers from 1 to 99, got 50,100"),
        ({"seconds": 0.1}, "--seconds must be from 0.5 to 600, got 0.1"),
        ({"seconds": float("nan")}, "--seconds must be from 0.5 to 600, got nan"),
        ({"memory": MemoryAmount(1023)}, "--memory must be"),
        ({"memory": MemoryAmount(15000)}, "--memory must be from 1024 to 14335 MiB on GPU 0, got 15000 MiB"),
        ({"gpu": "3"}, "--gpu '3' is not a GPU of this machine"),
        ({"simulate": "T1000"}, "there is no GPU model 'T1000'"),
    ],
)
def test_settings_that_make_no_sense_get_one_sentence(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadInput, match="^" + sentence.replace("(", "\\(")):
        next(verify(**{"simulate": MODEL, **settings}))


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver() -> Path:
        from lamina.errors import Outside

        raise Outside("this machine has no NVIDIA driver")

    monkeypatch.setattr("lamina.enforcement.run_machine.find_driver", no_driver)
    with pytest.raises(LaminaError, match="no NVIDIA driver") as raised:
        next(verify())
    assert raised.value.exit_code == 2


def test_the_machine_is_named_with_its_driver(held: Site) -> None:
    gpu, driver = facts(held)
    assert re.fullmatch(r"simulated Tesla T4, \d+ MiB, GPU-[0-9a-f-]{36}", gpu.note)
    assert re.fullmatch(r"\d+\.\d+[.\d]*, CUDA \d+\.\d", driver.note)


def test_the_command_writes_the_rows_and_ends_with_the_verdict(tmp_path: Path) -> None:
    file, html = tmp_path / "rows.json", tmp_path / "rows.html"
    files = ("--json", str(file), "--html", str(html))
    done = CliRunner().invoke(app, ["verify", "--simulate", MODEL, "--quick", "--memory", "1Gi", *files])
    rows = json.loads(file.read_text())
    failed = [row for row in rows if row["verdict"] == "FAILED"]
    assert done.exit_code == (1 if failed else 0)
    assert {row["check"] for row in rows} == {"machine", "memory", "views", "compute", "overhead", "escapes"}
    assert {row["check"] for row in failed} <= {"compute"}
    assert f"{len(rows)} checks: {len(failed)} failed" in done.output
    page = html.read_text()
    assert f"{len(rows)} checks: {len(failed)} failed" in page
    assert all(row["what"] in page for row in rows)
    assert page.count("<svg") == 4 and "memory: memory that a program got" in done.output


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_file_that_cannot_be_written_is_reported_before_anything_is_tried(tmp_path: Path, option: str) -> None:
    file = tmp_path / "nowhere" / "rows"
    done = CliRunner().invoke(app, ["verify", "--simulate", "no such model", option, str(file)])
    assert isinstance(done.exception, BadInput)
    assert str(done.exception) == f"cannot write {option} {file}: No such file or directory"


def test_a_chart_shows_what_was_not_tested_instead_of_a_figure() -> None:
    rows = [
        judged("compute", "30 %", "%", 30, 33, below=2, above=2),
        untested("compute", "70 %", "kernels ended early"),
    ]
    (chart,) = charts(rows)
    assert [(bar.name, bar.figure, chart.label(bar), bar.wrong) for bar in chart.bars] == [
        ("30 %", 33, "33 % (limit 30)", True), ("70 %", None, "not tested", False)
    ]  # fmt: skip
    assert cells(rows[0])[2:6] == ("30.0", "33.0", "+3.0", "%")
    assert charts(rows[1:]) == []
