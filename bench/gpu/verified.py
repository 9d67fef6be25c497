"""`lamina verify` as rows: its verdicts are those of this test, and both sides should come to the same ones."""

import json
import tempfile
from pathlib import Path

from bench.gpu import programs
from bench.gpu.comparison import Result, unanswered
from bench.gpu.sides import Deadline
from lamina.errors import Outside

PART = "verify"
LIMIT_S = 200.0
COMPARED = ("memory", "views", "escapes")
"""Checks whose verdict does not depend on how busy the machine is."""

Checks = dict[tuple[str, str], dict[str, object]]


def checks(gpu: str, simulate: str | None, deadline: Deadline) -> Checks:
    """The rows of `lamina verify`. Raises Outside where it did not come to an end."""
    command = programs.python("lamina", "verify", "--gpu", gpu, "--quick")
    if simulate is not None:
        command += ["--simulate", simulate]
    with tempfile.TemporaryDirectory(prefix="lamina-gpu-test-") as folder:
        file = Path(folder) / "verify.json"
        program = programs.start([*command, "--json", str(file)], programs.variables())
        code, said = programs.output(program, deadline.allows(LIMIT_S))
        if code not in (0, 1) or not file.exists():
            raise Outside(f"it ended with {code}: {programs.last_line(said)}")
        try:
            found = json.loads(file.read_text())
        except ValueError as error:
            raise Outside("it wrote no JSON") from error
    if not found:
        raise Outside(f"it ended with {code}: {programs.last_line(said)}")
    return {(row["check"], row["what"]): row for row in found}


def verify_results(card: Checks | str, simulated: Checks | str | None) -> list[Result]:
    """One line for each row. A side without rows is a sentence that says why, or None if it was not asked."""
    if isinstance(card, str):
        return [unanswered(PART, "lamina verify", card)]
    found = []
    for (check, what), row in card.items():
        result = Result(
            part=PART, row=check, fact=what, unit=str(row["unit"]), card=_measured(row), verdict=str(row["verdict"]),
            note=_note(row),
        )  # fmt: skip
        if isinstance(simulated, dict):
            other = simulated.get((check, what))
            result.simulated = None if other is None else _measured(other)
            if check in COMPARED and "not tested" not in (row["verdict"], other and other["verdict"]):
                result.same = other is not None and other["verdict"] == row["verdict"]
        found.append(result)
    return found


def _note(row: dict[str, object]) -> str:
    limit = row.get("limit")
    if row["check"] != "overhead" or not isinstance(limit, int | float):
        return str(row["note"])
    return f"{limit:,.0f} {row['unit']} without Lamina"


def _measured(row: dict[str, object]) -> float | None:
    value = row["measured"]
    return value if isinstance(value, int | float) else None
