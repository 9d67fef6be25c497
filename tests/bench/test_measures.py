"""Measures are judged by floors of a file; the file and the exit status say which held."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from bench.measures import Report, alternate

FLOORS = """
[part.cost]
of = "added"
most = 5
calibration = "a test"
[part.share]
of = "ratio"
most = 1.2
calibration = "a test"
published = "1.9"
[part.rate]
of = "ours"
least = 100
calibration = "a test"
"""
QUIET = Console(quiet=True)


@pytest.fixture
def report(tmp_path: Path) -> Report:
    floors = tmp_path / "floors.toml"
    floors.write_text(FLOORS)
    return Report("part", floors)


@pytest.mark.parametrize(
    ("name", "native", "ours", "ok"),
    [("cost", 10, 15, True), ("cost", 10, 15.1, False), ("share", 10, 12, True), ("share", 10, 12.1, False),
     ("rate", None, 100, True), ("rate", None, 99, False), ("rate", None, float("nan"), False),
     ("cost", float("nan"), 1, False), ("unknown", 1, 1e9, True)],
)  # fmt: skip
def test_a_measure_is_judged_by_its_floor(report: Report, name: str, native: float, ours: float, ok: bool) -> None:
    assert report.add(name, "ns", native=native, ours=ours).ok is ok
    assert report.finish(None, QUIET) == (0 if ok else 1)


def test_a_null_control_must_break_the_floor(report: Report) -> None:
    assert report.control("rate", "1/s", ours=3).ok
    assert report.finish(None, QUIET) == 0
    assert not report.control("rate", "1/s", ours=300).ok
    assert report.finish(None, QUIET) == 1


def test_the_file_has_an_object_for_each_measure(report: Report, tmp_path: Path) -> None:
    report.add("cost", "ns", native=10, ours=12)
    report.add("other", "1", ours=3)
    report.finish(tmp_path / "out.json", QUIET)
    written = json.loads((tmp_path / "out.json").read_text())
    assert written["cost"] == {
        "native": 10, "ours": 12, "unit": "ns", "of": "added", "compared": 2, "floor": 5, "ok": True
    }  # fmt: skip
    assert written["other"] == {"ours": 3, "unit": "1", "ok": True}


def test_sides_take_turns_and_give_medians() -> None:
    order: list[str] = []
    values = {"native": iter([1, 9, 2]), "ours": iter([5, 4, 30])}

    def side(name: str) -> float:
        order.append(name)
        return next(values[name])

    medians = alternate(3, {"native": lambda: side("native"), "ours": lambda: side("ours")})
    assert medians == {"native": 2, "ours": 5}
    assert order == ["native", "ours", "ours", "native", "native", "ours"]


def test_every_floor_of_the_project_has_a_bound_and_a_calibration() -> None:
    import tomllib

    from bench.measures import FLOORS as file

    for section, floors in tomllib.loads(file.read_text()).items():
        for name, floor in floors.items():
            assert ("most" in floor) != ("least" in floor), f"{section}.{name}"
            assert floor["calibration"], f"{section}.{name}"


def test_the_page_and_the_charts_have_each_measure_with_its_floor(report: Report, tmp_path: Path) -> None:
    report.add("cost", "ns", native=10, ours=16)
    report.add("rate", "1/s", ours=120)
    report.add("other", "ns", ours=3)
    bars = {
        chart.unit: [(bar.name, bar.value, bar.limit, bar.wrong) for bar in chart.bars] for chart in report.charts()
    }
    assert bars == {
        "ns": [("cost, added", 6, 5, True), ("other", 3, None, False)],
        "1/s": [("rate", 120, 100, False)],
    }
    assert report.finish(None, QUIET, tmp_path / "page.html") == 1
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == 2 and page.count('class="wrong"') == 1
