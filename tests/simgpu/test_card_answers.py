"""simgpu answers as real cards did: the facts that `python -m bench.gpu answers` printed on them, row by row."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench.gpu.comparison import results
from bench.gpu.rows import ROWS, Row
from bench.gpu.sides import Deadline, Side, side
from lamina.errors import Outside

MODELS = {"answers_of_h100.json": "H100-SXM5-80GB", "answers_of_h200.json": "H200"}
KNOWN = {
    "device attribute 140": "attributes",  # the board of that machine
    # The open kernel modules list the processes of the caller's namespace; simgpu lists all, as drivers before them.
    "its own PID is listed": "processes by NVML in a PID namespace",
}
"""Facts in which they differ, with their rows."""
TRIED = [row for row in ROWS if row.part == "answers" and row.probe != "slices"]


class Card(NamedTuple):
    """What a card answered, and the simulated one."""

    rows: dict[str, Any]
    simulated: Side


@pytest.fixture(scope="module", params=MODELS)
def card(request: pytest.FixtureRequest) -> Iterator[Card]:
    said = json.loads(Path(__file__).with_name(request.param).read_text())
    with side("0", f"{MODELS[request.param]}@{said['CUDA']}", Deadline(600)) as found:
        yield Card(said["rows"], found)


@pytest.mark.parametrize("row", TRIED, ids=lambda row: row.name)
def test_simgpu_answers_as_the_card_did(row: Row, card: Card) -> None:
    try:
        answered = card.simulated.ask(row)
    except Outside as refused:
        pytest.skip(str(refused))
    differ = {each.fact for each in results(row, card.rows[row.name], answered) if each.is_finding}
    assert differ == {fact for fact, name in KNOWN.items() if name == row.name}


def test_all_rows_of_the_cards_are_tried(card: Card) -> None:
    assert {row.name for row in ROWS if row.part == "answers"} == set(card.rows)
