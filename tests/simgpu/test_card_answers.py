"""simgpu answers as a real card did: the facts that `python -m bench.gpu answers` printed on an H100, row by row."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.gpu.comparison import results
from bench.gpu.rows import ROWS, Row
from bench.gpu.sides import Deadline, Side, side
from lamina.errors import Outside

CARD = json.loads(Path(__file__).with_name("answers_of_h100.json").read_text())
KNOWN = {
    # The driver refuses versions far beyond its own; where that begins has not been measured.
    **{f"known name, version of the far future, {what}": "cuGetProcAddress" for what in (
        "code", "pointer", "code of v2", "pointer of v2", "status of v2",
    )},
    "device attribute 140": "attributes",  # the board of that machine
    # The open kernel modules list the processes of the caller's namespace; simgpu lists all, as drivers before them.
    "its own PID is listed": "processes by NVML in a PID namespace",
}  # fmt: skip
"""Facts in which they differ, with their rows."""
ROWS_OF_CARD = [row for row in ROWS if row.name in CARD["rows"] and row.probe != "slices"]


@pytest.fixture(scope="module")
def simulated() -> Iterator[Side]:
    with side("0", f"H100-SXM5-80GB@{CARD['CUDA']}", Deadline(600)) as found:
        yield found


@pytest.mark.parametrize("row", ROWS_OF_CARD, ids=lambda row: row.name)
def test_simgpu_answers_as_the_card_did(row: Row, simulated: Side) -> None:
    try:
        answered = simulated.ask(row)
    except Outside as refused:
        pytest.skip(str(refused))
    differ = {each.fact for each in results(row, CARD["rows"][row.name], answered) if each.is_finding}
    assert differ == {fact for fact, name in KNOWN.items() if name == row.name}


def test_all_rows_of_the_card_are_tried() -> None:
    assert {row.name for row in ROWS if row.part == "answers"} == set(CARD["rows"])
    assert len(ROWS_OF_CARD) == len(CARD["rows"]) - 1
