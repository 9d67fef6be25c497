"""The man pages are what the commands say, roff formats them without a complaint, and nothing in them is lost."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from docs.generate.commands import leaves
from docs.generate.man import _plain
from docs.generate.reference import MAN, man_pages
from lamina.cli.groups import GROUPS, LAB
from lamina.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = man_pages()
CLI: Any = get_command(app)


def formatted(name: str) -> tuple[str, str]:
    """What a terminal shows without its bold letters, and the complaints of the formatter."""
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    command = ["groff", "-man", "-Tascii", "-P-c", "-ww", "-rLL=100n", str(MAN / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return re.sub(r"\x08.|.\x08|\x1b\[[0-9;]*m", "", done.stdout), done.stderr


@pytest.mark.parametrize("name", PAGES)
def test_a_man_page_is_up_to_date(name: str) -> None:
    assert (MAN / name).exists() and (MAN / name).read_text() == PAGES[name], "run `python -m docs.generate`"


def test_there_is_a_page_for_each_command_and_no_other() -> None:
    commands = {name for heading, names in GROUPS.items() if heading != LAB for name in names}
    assert {path.name for path in MAN.iterdir()} == {f"lamina-{name}.1" for name in commands} | {"lamina.1"}


@pytest.mark.parametrize("name", PAGES)
def test_a_man_page_is_formatted_without_a_complaint(name: str) -> None:
    shown, complaints = formatted(name)
    assert complaints == ""
    assert [heading for heading in ("NAME", "SYNOPSIS", "OPTIONS", "EXIT STATUS") if heading not in shown] in (
        [],
        ["OPTIONS"],
    )


@pytest.mark.parametrize("name", sorted(set(PAGES) - {"lamina.1"}))
def test_a_man_page_has_every_option_and_can_be_copied_from(name: str) -> None:
    command = name.removeprefix("lamina-").removesuffix(".1")
    shown, _ = formatted(name)
    for full, leaf in leaves(f"lamina {command}", CLI.commands[command]):
        assert full in shown
        options = [option for parameter in leaf.params for option in parameter.opts if option.startswith("-")]
        assert [option for option in options if option not in shown] == []


@pytest.mark.parametrize(
    ("text", "roff"),
    [("--node", "\\-\\-node"), (".profile", "\\&.profile"), ("'a'", "\\&'a'"), ("a\\b", "a\\eb")],
)
def test_roff_prints_texts_as_they_are(text: str, roff: str) -> None:
    assert _plain(text) == roff


def test_the_wheel_has_the_pages() -> None:
    installed = "install_subdir('man', install_dir: get_option('datadir') / 'share/man/man1', strip_directory: true)"
    assert installed in (ROOT / "meson.build").read_text()
