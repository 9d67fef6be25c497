"""A benchmark that is interrupted ends in one sentence."""

import ast
from pathlib import Path

import pytest

from bench.program import end_with

BENCH = Path(__file__).resolve().parents[2] / "bench"
PROGRAMS = sorted(BENCH.glob("*/__main__.py"))


def interrupted() -> int:
    raise KeyboardInterrupt


def test_ctrl_c_is_one_sentence_and_130(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        end_with(interrupted)
    assert ended.value.code == 130
    assert capsys.readouterr().err == "the benchmark was interrupted before it was done; nothing was written\n"


@pytest.mark.parametrize("code", [0, 1])
def test_the_code_of_the_measures_is_passed_on(code: int) -> None:
    with pytest.raises(SystemExit) as ended:
        end_with(lambda: code)
    assert ended.value.code == code


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.parent.name)
def test_each_benchmark_ends_this_way(path: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    names = [node.func.id for node in calls if isinstance(node.func, ast.Name)]
    assert names.count("end_with") == 1
