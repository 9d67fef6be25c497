"""`lamina verify` on a simulated GPU: limits that hold are well, and limits that nobody holds are found out."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lamina.cli.main import app
from lamina.errors import BadInput, LaminaError
from lamina.verify.compute import POINTS, compute
from lamina.verify.escapes import HELD, KNOWN, escapes
from lamina.verify.machine import Site, site
from lamina.verify.memory import KINDS, memory
from lamina.verify.overhead import CALLS, overhead
from lamina.verify.rows import judged
from lamina.verify.run import verify
from lamina.verify.views import views

MODEL = "T4"
LIMIT = 1024


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
    assert {row.what: row.error for row in rows if "plain" in row.what or "managed, to" in row.what} == {
        "plain, to the byte": 0, "plain, as the driver counts": 0, "managed, to the byte": 0
    }  # fmt: skip


def test_memory_that_nobody_holds_is_found_out(unheld: Site) -> None:
    rows = list(memory(unheld, LIMIT))
    assert [row.verdict for row in rows] == ["FAILED"] * 2 * len(KINDS), rows


def test_views_tell_the_limit(held: Site) -> None:
    assert {row.what: row.verdict for row in views(held, LIMIT)} == {
        "cuMemGetInfo, total": "ok", "cuDeviceTotalMem, total": "ok", "NVML, total": "ok", "devices": "ok",
        "NVML devices": "ok", "processes that NVML lists": "ok", "lamina-smi, total": "ok",
        "nvidia-smi, total": "not tested",
    }  # fmt: skip


def test_views_that_tell_the_card_are_found_out(unheld: Site) -> None:
    failed = {row.what for row in views(unheld, LIMIT) if row.verdict == "FAILED"}
    assert failed == {"cuMemGetInfo, total", "cuDeviceTotalMem, total", "NVML, total", "lamina-smi, total"}


def test_shares_that_nobody_holds_are_found_out(unheld: Site) -> None:
    first, *rows = compute(unheld, [20], 0.5)
    if first.measured is not None and first.measured < 90:
        pytest.skip("this machine is too busy to keep even a simulated GPU busy")
    assert first.what == "without limits"
    assert [(row.limit, row.verdict) for row in rows] == [(20, "FAILED"), (30, "FAILED"), (60, "FAILED")], rows


def test_shares_that_are_held_are_never_passed(held: Site) -> None:
    for row in compute(held, [20], 1):
        if row.limit is not None and row.measured is not None:
            assert row.measured < row.limit + POINTS, row


def test_ways_around_are_held_or_known(held: Site) -> None:
    verdicts = {row.what: row.verdict for row in escapes(held, LIMIT)}
    assert verdicts == dict.fromkeys(HELD, "ok") | dict.fromkeys(KNOWN, "known") | {
        "a container's own files": "not tested"
    }


def test_ways_that_lead_around_are_found_out(unheld: Site) -> None:
    verdicts = {row.what: row.verdict for row in escapes(unheld, LIMIT)}
    assert {verdicts[way] for way in HELD} == {"FAILED"}


def test_overhead_has_a_figure_for_each_call(held: Site) -> None:
    rows = list(overhead(held, 1))
    assert [row.what for row in rows] == list(CALLS.values())
    assert all(row.measured and row.limit for row in rows)


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
        ({"shares": (0,)}, "--shares 0: allowed are whole numbers from 1 to 99"),
        ({"shares": (50, 100)}, "--shares 50,100: allowed"),
        ({"seconds": 0.1}, "--seconds 0.1: allowed are 0.5 to 600"),
        ({"seconds": float("nan")}, "--seconds nan"),
        ({"memory_mib": 1023}, "--memory 1023 MiB: allowed are 1024 to"),
        ({"memory_mib": 15000}, "--memory 15000 MiB: allowed are 1024 to 14335 MiB on GPU 0"),
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

    monkeypatch.setattr("lamina.verify.machine.find_driver", no_driver)
    with pytest.raises(LaminaError, match="no NVIDIA driver") as raised:
        next(verify())
    assert raised.value.exit_code == 2


def test_the_command_writes_the_rows_and_ends_with_the_verdict(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    done = CliRunner().invoke(app, ["verify", "--simulate", MODEL, "--quick", "--memory", "1Gi", "--json", str(file)])
    rows = json.loads(file.read_text())
    failed = [row for row in rows if row["verdict"] == "FAILED"]
    assert done.exit_code == (1 if failed else 0)
    assert {row["check"] for row in rows} == {"memory", "views", "compute", "overhead", "escapes"}
    assert {row["check"] for row in failed} <= {"compute"}
    assert f"{len(rows)} checks: {len(failed)} failed" in done.output


def test_a_file_that_cannot_be_written_is_told_before_anything_is_tried(tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "rows.json"
    done = CliRunner().invoke(app, ["verify", "--simulate", "no such model", "--json", str(file)])
    assert isinstance(done.exception, BadInput)
    assert str(done.exception) == f"--json {file} cannot be written: No such file or directory"
