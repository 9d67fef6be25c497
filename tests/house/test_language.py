"""Texts, comments and names are in plain American English."""

import subprocess
from pathlib import Path

import pytest

from tests.words import avoided

ROOT = Path(__file__).resolve().parents[2]
QUOTED = {("lab/src/lamina_lab/kubelet/device_manager/plugins.py", "Cancelled")}  # a status code of gRPC
LISTS = {"tests/words.py", "tests/house/test_language.py"}
OF_OTHERS = "src/lamina/operations/dashboard/page/lib/"
GENERATED = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py")


def texts() -> dict[str, str]:
    """Every tracked text file by name, but those about avoided words."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout, so there is no list of files to read")
    names = [name for name in listed.stdout.decode().split("\0") if name]
    return {
        name: (ROOT / name).read_text(errors="replace")
        for name in names
        if (ROOT / name).is_file() and name not in LISTS and not name.endswith(GENERATED)
        if not name.startswith(OF_OTHERS)
    }


def test_no_text_uses_an_avoided_word() -> None:
    assert [
        f'{name}:{line}: avoid "{word}"'
        for name, text in texts().items()
        for line, word in avoided(text)
        if (name, word) not in QUOTED
    ] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\n# the control\n# part", [(2, "control part")]),
        ("the port is told", [(1, "told")]),
        ("Prioritised; behaviours", [(1, "Prioritised"), (1, "behaviours")]),
        ("if allowed is None or task.cancelled():", []),
        ("what is wrong, and what allowed is", [(1, "allowed is")]),
        ("prioritize, amend, lesson, besides, otherwise", []),
    ],
)
def test_words_are_found(text: str, expected: list[tuple[int, str]]) -> None:
    assert list(avoided(text)) == expected
