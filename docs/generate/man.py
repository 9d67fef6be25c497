"""The man pages, from typer's own description of the commands: `lamina.1`, and one page for each command.

Those of the lab are left out, which is a distribution of its own.
"""

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from docs.generate.commands import leaves, shown_default, shown_required, usage
from lamina.cli.exit_codes import ANSWERS, MEANINGS
from lamina.cli.groups import GROUPS, LAB
from lamina.cli.main import app

_WORDS = re.compile(r"`([^`]+)`")
_GROUPS = {heading: names for heading, names in GROUPS.items() if heading != LAB}
_KUBECTL = "As a plug-in of kubectl, the same commands are `kubectl lamina`."


def pages() -> Iterator[tuple[str, str]]:
    """Each page with its file name."""
    root: Any = get_command(app)
    named = [(name, root.commands[name]) for names in _GROUPS.values() for name in names]
    yield "lamina.1", _page("lamina", str(root.help), _overview(root))
    for name, command in named:
        found = list(leaves(f"lamina {name}", command))
        first = str(command.help or found[0][1].help)
        yield f"lamina-{name}.1", _page(f"lamina-{name}", first, _of_command(name, found))


def _page(title: str, summary: str, parts: Iterator[str]) -> str:
    source = '.\\" Generated from src/lamina/cli by `python -m docs.generate`. Do not edit.\n'
    head = f'.TH {_plain(title.upper())} 1 "" "Lamina" "Lamina"\n.SH NAME\n'
    name = f"{_plain(title)} \\- {_text(_sentence(summary))}\n"
    return source + head + name + "".join(f"{part.rstrip()}\n" for part in parts)


def _overview(root: Any) -> Iterator[str]:
    yield ".SH SYNOPSIS\n\\fBlamina\\fR [\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGS\\fR]..."
    yield f".SH DESCRIPTION\n{_text(str(root.help))}\n.PP\n{_text(_KUBECTL)}"
    for heading, names in _GROUPS.items():
        yield f".SH {_plain(heading.upper())}"
        for name in names:
            yield f".TP\n\\fBlamina\\-{_plain(name)}\\fR(1)\n{_text(_sentence(str(root.commands[name].help)))}"
    yield ".SH OPTIONS"
    yield from _options(root)
    yield from _exit_status("")


def _of_command(name: str, found: list[tuple[str, Any]]) -> Iterator[str]:
    yield ".SH SYNOPSIS"
    yield "\n.br\n".join(f"\\fB{_plain(usage(full, leaf))}\\fR" for full, leaf in found)
    if len(found) == 1:
        yield f".SH DESCRIPTION\n{_paragraphs(found[0][1])}\n.SH OPTIONS"
        yield from _options(found[0][1])
    else:
        yield ".SH COMMANDS"
        for full, leaf in found:
            yield f".SS {_plain(full)}\n{_paragraphs(leaf)}"
            yield from _options(leaf)
    yield from _exit_status(name)
    yield ".SH SEE ALSO\n\\fBlamina\\fR(1), \\fBkubectl\\fR(1)"


def _paragraphs(command: Any) -> str:
    return "\n.PP\n".join(_text(part) for part in str(command.help or "").split("\n\n"))


def _options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        argument = parameter.param_type_name == "argument"
        names = [parameter.name.upper()] if argument else [*parameter.opts, *parameter.secondary_opts]
        default = shown_default(parameter).removeprefix("off")
        extra = shown_required(parameter) or (f"Default: {default}" if default else "")
        more = f" {_capital(extra)}." if extra else ""
        shown = ", ".join(f"\\fB{_plain(name)}\\fR" for name in names)
        yield f".TP\n{shown}\n{_text(_ended(parameter.help or '') + more)}"


def _exit_status(name: str) -> Iterator[str]:
    yield ".SH EXIT STATUS"
    if name == "run":
        yield "That of the command which it runs."
        return
    answers = [f"{command}: {meaning}" for command, meaning in ANSWERS.items() if command.split()[0] == name]
    for number, meaning in MEANINGS.items():
        means = "; ".join([meaning, *(answers if number == 1 else ())])
        yield f".TP\n\\fB{int(number)}\\fR\n{_text(_ended(_capital(means)))}"


def _sentence(text: str) -> str:
    first = " ".join(text.split("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".")


def _ended(text: str) -> str:
    return text if not text or text.endswith(".") else f"{text}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _text(text: str) -> str:
    """Running text, with what is between backquotes in bold."""
    escaped = _plain(" ".join(text.split()))
    return _WORDS.sub(lambda word: f"\\fB{word[1]}\\fR", escaped)


def _plain(text: str) -> str:
    """Text that roff prints as it is: hyphens as minus signs, so that options can be copied."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
