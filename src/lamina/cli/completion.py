"""`lamina completion`: scripts with which shells complete commands and options.

A script contains all commands and options, so that a completion starts no program.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer

from lamina.cli.options import one_of
from lamina.cli.terminal import say

Vocabulary = Mapping[str, tuple[str, ...]]
"""The words that may follow a command, by the words of the command, such as "mig list"."""


def completion(
    context: typer.Context,
    shell: Annotated[str, typer.Argument(help="The shell: bash, zsh or fish.")],
) -> None:
    """Print a script that completes commands and options: `source <(lamina completion bash)`.

    For zsh write it to a file `_lamina` in a directory of `$fpath`, for fish to
    `~/.config/fish/completions/lamina.fish`.
    """
    one_of(shell, tuple(_SCRIPTS), "SHELL")
    root = context.find_root()
    say(_SCRIPTS[shell](vocabulary(root.command, root)), end="")


def vocabulary(command: Any, context: Any) -> Vocabulary:
    """What may follow each command."""
    return dict(_words(command, context, ()))


def following(command: Any, context: Any) -> tuple[str, ...]:
    """What may follow this command alone: commands and long options."""
    options = [
        name
        for parameter in command.get_params(context)
        if parameter.param_type_name == "option" and not parameter.hidden
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("--")
    ]
    return (*nested_in(command), *options)


def nested_in(command: Any) -> Mapping[str, Any]:
    """The commands of a group, by name; none of a command that is no group."""
    return getattr(command, "commands", {})


def _words(command: Any, context: Any, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield " ".join(path), following(command, context)
    for name, inner in nested_in(command).items():
        yield from _words(inner, context, (*path, name))


def _bash(words: Vocabulary) -> str:
    return f"""_lamina() {{
    local command="" word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "${{command:+$command }}$word" in
            {_commands(words)}) command="${{command:+$command }}$word" ;;
        esac
    done
    case "$command" in
{_cases(words, lambda following: f'word="{following}"')}
    esac
    COMPREPLY=($(compgen -W "$word" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _lamina lamina
"""


def _zsh(words: Vocabulary) -> str:
    return f"""#compdef lamina
_lamina() {{
    local command="" word
    local -a following
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "${{command:+$command }}$word" in
            ({_commands(words)}) command="${{command:+$command }}$word" ;;
        esac
    done
    case "$command" in
{_cases(words, lambda following: f"following=({following})", opening="(")}
    esac
    compadd -a following || _files
}}
compdef _lamina lamina
"""


def _fish(words: Vocabulary) -> str:
    return f"""function __lamina_words
    set -l command ""
    for word in (commandline -opc)[2..-1]
        switch (string trim "$command $word")
            case {" ".join(f"'{path}'" for path in words if path)}
                set command (string trim "$command $word")
        end
    end
    switch "$command"
{_fish_cases(words)}
    end
end
complete -c lamina -a '(__lamina_words)'
"""


def _commands(words: Vocabulary) -> str:
    return "|".join(f'"{path}"' for path in words if path)


def _cases(words: Vocabulary, action: Callable[[str], str], opening: str = "") -> str:
    lines = (f'{opening}"{path}") {action(" ".join(following))} ;;' for path, following in words.items())
    return "\n".join(f"        {line}" for line in lines)


def _fish_cases(words: Vocabulary) -> str:
    return "\n".join(
        f"        case '{path}'\n            printf '%s\\n' {' '.join(following)}"
        for path, following in words.items()
        if following
    )


_SCRIPTS: Mapping[str, Callable[[Vocabulary], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
