"""Long commands show progress on a terminal, and Ctrl-C ends them with one sentence, 130 and nothing left."""

import tempfile
from pathlib import Path

import pytest

from tests.terminal import CTRL_C, Terminal
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
CLUSTER = str(ROOT / "examples" / "simulation" / "cluster.yaml")
LONG = {
    "simulate": ("--nodes", CLUSTER, "--pods", CLUSTER, *("--policy", "binpack") * 5000),
    "verify": ("--simulate", "T4", "--seconds", "600"),
}
PROGRESS = {"simulate": "/5", "verify": "memory: "}
"""What the progress of each shows."""


@pytest.mark.parametrize("command", LONG)
def test_ctrl_c_ends_a_command_that_shows_its_progress(command: str) -> None:
    with Terminal(command, *LONG[command]) as terminal:
        terminal.until_shown(PROGRESS[command])
        terminal.type(CTRL_C)
        assert terminal.ended() == 130
        last = terminal.shown.splitlines()[-1]
        assert last.endswith(f"lamina: {command} was interrupted before it was done")
        assert "Traceback" not in terminal.shown
        wait_until(lambda: not terminal.others, lambda: f"{terminal.others} still run")


def test_an_interrupted_verification_leaves_files_as_they_were(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.html"
    old.write_text("[1]")
    with Terminal("verify", *LONG["verify"], "--json", str(old), "--html", str(new)) as terminal:
        terminal.until_shown(PROGRESS["verify"])
        terminal.type(CTRL_C)
        assert terminal.ended() == 130
    assert old.read_text() == "[1]" and not new.exists()


def test_an_interrupted_demo_leaves_no_lab() -> None:
    with tempfile.TemporaryDirectory(prefix="lam") as folder:
        lab = Path(folder) / "demo"
        with Terminal("demo", environment={"LAMINA_LABS": folder}) as terminal:
            terminal.until_shown("Starting the lab")
            wait_until((lab / "lab.json").exists, lambda: terminal.shown)
            terminal.type(CTRL_C)
            assert terminal.ended() == 130
            assert "lamina: demo was interrupted before it was done" in terminal.shown
        wait_until(lambda: not lab.exists(), lambda: "the lab stays")


def test_a_question_is_interrupted_as_a_command_is() -> None:
    with Terminal("advise") as terminal:
        terminal.until_shown("Does only one program use the GPU?")
        terminal.type(CTRL_C)
        assert terminal.ended() == 130
        assert "lamina: advise was interrupted before it was done" in terminal.shown


def test_the_help_is_grouped_and_cuts_no_sentence() -> None:
    with Terminal("--help", width=80) as terminal:
        assert terminal.ended() == 0
        assert "[ARGS]..." in terminal.shown and terminal.shown.count("...") == 1
        assert max(map(len, terminal.shown.splitlines())) <= 80
        headings = [line.rstrip(":") for line in terminal.shown.splitlines() if line.endswith(":") and line[0] != " "]
        assert headings[-3:] == [
            "For administrators of a cluster",
            "Lab (lamina-lab)",
            "Components, started by manifests",
        ]
