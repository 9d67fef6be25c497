"""The pages of commands, from typer's own description of them: one page for each group of `lamina --help`."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from docs.generate.markdown import code, page, paragraph, sentence, table
from lamina.cli.exit_codes import ANSWERS, MEANINGS
from lamina.cli.groups import GROUPS
from lamina.cli.lists import EVERY_S
from lamina.cli.main import app

_FILES = {
    "On one machine": ("cli-machine", "Commands on one machine"),
    "For users of a cluster": ("cli-users", "Commands for users of a cluster"),
    "Cost and advice": ("cli-advice", "Commands for cost and advice"),
    "For administrators of a cluster": ("cli-administrators", "Commands for administrators"),
    "Lab (lamina-lab)": ("cli-lab", "Commands of the lab"),
    "Components, started by manifests": ("cli-components", "Components"),
}
_SOURCE = "src/lamina/cli and lab/src/lamina_lab/cli"
_EVERY = """
Every command has `--help`; `lamina --version` prints the version. [Exit codes](cli.md#exit-codes) are the same for all.
"""
_PLUGIN = """
With the commands, pip also installs `kubectl-lamina`, so that `kubectl lamina why POD` is `lamina why POD`. kubectl's
own completion offers the commands and options. kubectl passes no flags before the name of a plug-in, so options
follow the command: `kubectl lamina pods --context prod -n team`, not `kubectl --context prod lamina pods`.
"""
_LISTS = f"""
Commands that list take kubectl's options: `-o table|wide|json|yaml|name`, `--no-headers`, and `--sort-by` with a field
of the JSON form, in rising order, lists by their length and what is not known last. `gpus`, `pods`, `quotas`,
`mig list`, `advise shares` and `advise idle` also take `--watch` and `--selector`, for which GPUs have the labels of
their nodes. `why` and `fits` print their answers with `-o json` or `yaml`, and `cost` its accounts.

`--watch` reads the cluster again every {EVERY_S:g} s until Ctrl-C and prints the rows that have changed, in JSON and
YAML one document for each. While the cluster does not answer, one sentence says so, and the list goes on afterwards.
"""
_EXIT_CODES = """
Scripts can rely on these. `lamina run` ends with what its command ends with, and every other command with one of these.
"""


def pages() -> Iterator[tuple[str, str]]:
    root: Any = get_command(app)
    assert _FILES.keys() == GROUPS.keys()
    yield "cli.md", _index(root)
    for group, names in GROUPS.items():
        file, title = _FILES[group]
        commands = [(name, root.commands[name]) for name in names if name in root.commands]
        parts = [part for name, command in commands for part in _command(f"lamina {name}", command)]
        yield f"{file}.md", page(title, _SOURCE, _EVERY, *parts)


def _index(root: Any) -> str:
    rows = [
        (f"[`{full}`]({file}.md#{full.replace(' ', '-')})", _help(command))
        for group, (file, _) in _FILES.items()
        for name in GROUPS[group]
        if name in root.commands
        for full, command in leaves(f"lamina {name}", root.commands[name])
    ]
    codes = [(code(str(int(number))), meaning) for number, meaning in MEANINGS.items()]
    answers = [(code(f"lamina {name}"), meaning) for name, meaning in ANSWERS.items()]
    lists = ("## Lists", _LISTS)
    plugin = ("## As a plug-in of kubectl", _PLUGIN)
    exits = (_EXIT_CODES, table(("code", "means"), codes), table(("command", "ends with 1 if"), answers))
    return page("Commands", _SOURCE, table(("command", "does"), rows), *lists, *plugin, "## Exit codes", *exits)


def leaves(full: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The command and those below it; a group that does nothing by itself is left out."""
    nested = getattr(command, "commands", {})
    if not nested or getattr(command, "invoke_without_command", False):
        yield full, command
    for name, inner in nested.items():
        if not inner.hidden:
            yield from leaves(f"{full} {name}", inner)


def _help(command: Any) -> str:
    return sentence(str(command.help or "").split("\n\n")[0])


def _command(full: str, command: Any) -> Iterator[str]:
    for name, leaf in leaves(full, command):
        yield f"## {name}"
        yield "\n\n".join(paragraph(part) for part in str(leaf.help or "").split("\n\n"))
        yield f"    {usage(name, leaf)}"
        rows = [_option(parameter) for parameter in leaf.params if not _is_help(parameter)]
        if rows:
            yield table(("option", "meaning", "default"), rows)


def _is_help(parameter: Any) -> bool:
    return parameter.name == "help" or getattr(parameter, "hidden", False)


def usage(name: str, command: Any) -> str:
    arguments = [
        f"{parameter.name.upper()}{'...' if parameter.nargs == -1 else ''}"
        for parameter in command.params
        if parameter.param_type_name == "argument"
    ]
    options = ["[OPTIONS]"] if any(p.param_type_name == "option" and not _is_help(p) for p in command.params) else []
    dashes = ["--"] if any(argument == "COMMAND..." for argument in arguments) else []
    return " ".join([name, *options, *dashes, *arguments])


def _option(parameter: Any) -> tuple[str, str, str]:
    if parameter.param_type_name == "argument":
        return code(parameter.name.upper()), sentence(parameter.help or ""), shown_required(parameter)
    names = [*parameter.opts, *parameter.secondary_opts]
    variables = parameter.envvar
    meaning = sentence(parameter.help or "")
    if variables:
        meaning += f" ({', '.join(map(code, [variables] if isinstance(variables, str) else variables))})"
    return ", ".join(code(name) for name in names), meaning, shown_required(parameter) or shown_default(parameter)


def shown_required(parameter: Any) -> str:
    return "required" if parameter.required else ""


def shown_default(parameter: Any) -> str:
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return shown
    value = parameter.default
    if value is None or callable(value) or value == "" or value in ((), []) or "UNSET" in repr(value).upper():
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return code(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
