"""A process takes a figure only from an answer to its own question."""

import subprocess
from pathlib import Path

import pytest

from lamina.enforcement.process_memory import word
from tests.building import compile_program

MIB = 1 << 20
NOT_YET, UNKNOWN = -1, 0
WRAP = 1 << 32  # ms


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(tmp_path_factory.mktemp("figure"), "figure", ["native/tests/facade_figure.c"])


@pytest.mark.parametrize("epoch", [0, WRAP - 5010, WRAP - 5000, 7 * WRAP])
@pytest.mark.parametrize(
    ("answered_at", "used", "taken"),
    [
        (5004, 303 * MIB, 303 * MIB),
        (5012, 303 * MIB, 303 * MIB),
        (5004, 303 * MIB + 1, 303 * MIB + 1024),
        (5004, 3 << 40, 3 << 40),
        (5004, 0, UNKNOWN),
        (5000, 303 * MIB, NOT_YET),
        (4990, 303 * MIB, NOT_YET),
        (5013, 303 * MIB, NOT_YET),
        (0, 303 * MIB, NOT_YET),
    ],
)
def test_an_answer_counts_if_the_driver_was_asked_after_the_question(
    program: Path, epoch: int, answered_at: int, used: int, taken: int
) -> None:
    """Asked at 5000 ms, looked at 5012 ms."""
    line = f"{word(used, (epoch + answered_at + 0.5) / 1000)} {epoch + 5000} {epoch + 5012}\n"
    done = subprocess.run([program], input=line, capture_output=True, text=True, check=True)
    assert int(done.stdout) == taken


def test_a_word_that_was_never_written_is_no_answer(program: Path) -> None:
    done = subprocess.run([program], input="0 5000 5012\n0 5000 5000\n", capture_output=True, text=True, check=True)
    assert done.stdout == "-1\n-1\n"
