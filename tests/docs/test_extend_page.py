"""The page about adding a dialect names all that a dialect can have, and its directions fit the code."""

import re
from pathlib import Path

import pytest

from lamina.configuration import DEFAULT
from lamina.dialects.protocol import Dialect
from lamina.dialects.registry import DIALECTS, resource_names
from tests.dialects.toy import ToyDialect

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "contributing" / "extend.md").read_text().partition("## A card")[0]
MEMBERS = sorted({name for name in (*vars(Dialect), *Dialect.__annotations__) if not name.startswith("_")})


@pytest.mark.parametrize("member", MEMBERS)
def test_every_member_of_the_protocol_is_explained(member: str) -> None:
    assert f"`{member}`" in PAGE


def test_the_table_names_only_members_of_the_protocol() -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} <= set(MEMBERS)


def test_paths_exist() -> None:
    paths = re.findall(r"`((?:src|tests|examples)/[\w/.]+)`", PAGE)
    assert len(paths) > 5
    assert [path for path in paths if path != "src/lamina/dialects/NAME" and not (ROOT / path).exists()] == []


def test_the_line_of_the_import_rules_that_it_quotes_is_there() -> None:
    (line,) = re.findall(r"the line `([^`]+)` of\s+`.importlinter`", PAGE)
    assert f"    {line}\n" in (ROOT / ".importlinter").read_text()
    assert set(line.split(" | ")) == {dialect.name for dialect in DIALECTS}


def test_the_toy_has_nearly_all_of_them() -> None:
    own = {name for name in MEMBERS if getattr(ToyDialect, name, None) is not getattr(Dialect, name, None)}
    assert own >= set(MEMBERS) - {
        *("fill_template", "template_condition", "has_defaults", "limits_by_quota", "counts_nothing", "with_size")
    }


def test_prefixes_of_tickets_are_unique_because_sockets_are_named_by_them() -> None:
    prefixes = [names.ticket_prefix for names in resource_names(DEFAULT)]
    assert all(prefixes) and len(set(prefixes)) == len(prefixes)
