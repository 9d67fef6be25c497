"""What tenants wrote is no command to the terminal of a person who looks at it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from lamina.cli import main as cli
from lamina.cli import resize
from lamina.cli.options import shown
from lamina.errors import BadInput, Outside

HOSTILE = "done main=1\x1b[2J\x1b]0;owned\x07\r\x9b1mPod \u202eb"


@pytest.mark.parametrize("hostile", [HOSTILE, "\x1bc", "\x9b2J", "a\rb", "\x08", "\x7f", "\u2028", "\u202e", "\ud800"])
def test_only_lines_and_printable_characters_are_left(hostile: str) -> None:
    assert shown(hostile).isprintable() and shown(f"a\n{hostile}").startswith("a\n")


@pytest.mark.parametrize("text", ["", "Pod a/b: done.", "zwei Zeilen\nmit ä und 日本"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert shown(text) == text


@pytest.mark.parametrize("kind", [BadInput, Outside])
def test_an_error_with_what_a_tenant_wrote_is_shown_so(
    kind: Callable[[str], Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: Any) -> None:
        raise kind(HOSTILE)

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit):
        cli.main()
    printed = capsys.readouterr().err
    assert "done main=1" in printed and "\x1b" not in printed and "\r" not in printed


def test_the_status_that_a_pod_has_is_shown_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant may write the annotation in the place of the controller."""

    async def resized(*_: Any, say: Callable[[str], None], **__: Any) -> str:
        say(HOSTILE)
        return f"Pod a/b: {HOSTILE}."

    monkeypatch.setattr(resize.operation, "resize_pod", resized)
    monkeypatch.setattr(resize, "with_installation", lambda _, work: asyncio.run(work(None)))
    monkeypatch.setattr(resize, "chosen_namespace", lambda *_: "a")
    printed = CliRunner().invoke(cli.app, ["resize", "b", "--memory", "1Mi", "--wait"]).output
    assert printed.count("done main=1") == 2 and "\x1b" not in printed and "\x9b" not in printed
