"""Each part of each benchmark runs in its smallest form. Benchmarks are found by their programs, new ones too."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import __main__ as listing
from bench.catalog import FOLDER, benchmarks
from bench.parts import Need, Part, package, program
from bench.program import CANNOT_RUN, add_parts, chosen

FOUND = benchmarks()
EACH = [(name, part) for name, parts in FOUND.items() for part in parts]
WITHOUT_FILE = "bench.packing.train"
"""It prints weights and measures nothing."""
FLOOR_BROKEN = 1


def test_every_program_in_the_folder_is_found() -> None:
    programs = {path.parent.relative_to(FOLDER.parent) for path in FOLDER.rglob("__main__.py")} - {Path("bench")}
    assert {Path(*name.split(".")) for name in FOUND} == programs
    assert all(FOUND.values())


@pytest.mark.parametrize(("name", "part"), EACH, ids=lambda value: value)
def test_a_part_runs_in_its_smallest_form(name: str, part: str, tmp_path: Path) -> None:
    """It comes to its end and writes what it measured. The figures mean nothing, so a floor may break."""
    smallest = FOUND[name][part].smallest
    if missing := FOUND[name][part].missing({word.removeprefix("--") for word in smallest}):
        pytest.skip(missing)
    file = tmp_path / "found.json"
    output = {"bench.gpu": ("--out", file.with_suffix("")), WITHOUT_FILE: ()}.get(name, ("--json", file))
    command = [sys.executable, "-m", name, part, *smallest, *output]
    done = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, check=False, timeout=300)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, FLOOR_BROKEN), done.stderr
    assert name == WITHOUT_FILE or json.loads(file.read_text())


NOTHING = Need("nothing", lambda: "")
ABSENT = Need("absent", lambda: "absent is not installed: pip install absent")
PARTS = {
    "works": Part(about="one", needs=(NOTHING,)),
    "lacks": Part(about="two", needs=(ABSENT,)),
    "given": Part(about="three", needs=(Need("lists", ABSENT.missing, unless="lists"),)),
    "some": Part(about="four", needs=(Need("some", ABSENT.missing, only_some=True),), usual=False),
}


def choose(*words: str) -> list[str]:
    parser = argparse.ArgumentParser(prog="python -m bench.x")
    add_parts(parser, PARTS)
    parser.add_argument("--lists", default="here")
    return chosen(parser, PARTS, parser.parse_args(words))


def test_parts_that_cannot_run_are_left_out_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert choose() == ["works"]
    said = capsys.readouterr().err.splitlines()
    assert said == [f"python -m bench.x cannot run {each}: {ABSENT.missing()}" for each in ("lacks", "given")]
    assert choose("--lists", "there") == ["works", "given"]


@pytest.mark.parametrize("named", [["lacks"], ["works", "lacks"], ["given"]])
def test_a_part_that_was_named_and_cannot_run_ends_the_benchmark(
    named: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        choose(*named)
    assert ended.value.code == CANNOT_RUN
    assert capsys.readouterr().err.splitlines() == [f"python -m bench.x cannot run {named[-1]}: {ABSENT.missing()}"]


def test_a_part_runs_without_what_only_some_of_it_needs() -> None:
    assert choose("some") == ["some"]


def test_an_unknown_part_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        choose("works", "other")
    assert "there is no part 'other'; there are works, lacks, given, some" in capsys.readouterr().err


def test_a_missing_package_or_program_says_how_to_install_it() -> None:
    assert package("no_such_package", "bench").missing() == "no_such_package is not installed: pip install '.[bench]'"
    assert (
        program("no-such-program", "a-package").missing() == "no-such-program is not on PATH: apt-get install a-package"
    )
    assert package("pytest", "test").missing() == program("sh", "dash").missing() == ""


def test_the_list_names_each_part_with_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    listing.main()
    said = capsys.readouterr().out
    assert all(f"{name} " in said and f" {part}" in said for name, part in EACH)
    assert "KUBE_BIN_DIR" in said or "Kubernetes (is there)" in said
    assert listing.needs(PARTS["lacks"]) == "absent (absent is not installed: pip install absent)"
    assert listing.needs(PARTS["works"]) == "nothing (is there)"
    assert listing.needs(PARTS["given"]).startswith("lists, unless --lists is given (")
    assert listing.needs(PARTS["some"]).startswith("some, for some of its measures (")
