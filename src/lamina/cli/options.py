"""Options that several commands share, and how a command gets those of its kind."""

import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer

from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.core.object_names import is_namespace_name
from lamina.errors import BadInput

Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="Path to the kubeconfig file. Defaults to the one that kubectl uses."),
]
KubeContext = Annotated[
    str,
    typer.Option(
        "--context",
        help="Context of the kubeconfig. Defaults to its current one, as kubectl has it.",
        show_default=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print the cluster and what would happen.")]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        help="Namespace to look in. Defaults to that of the kubeconfig's context.",
        show_default=False,
    ),
]
OneNamespace = Annotated[str, typer.Option("--namespace", "-n", help="Only this namespace.", show_default=False)]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="All namespaces.")]

Output = Annotated[str, typer.Option("--output", "-o", help="Form: table, wide, json, yaml or name.")]
AnswerOutput = Annotated[str, typer.Option("--output", "-o", help="Form: text, json or yaml.")]
Selector = Annotated[
    str, typer.Option("--selector", "-l", help="Labels, such as `app=web,tier in (a, b)`.", show_default=False)
]
SortBy = Annotated[
    str, typer.Option("--sort-by", help="Field of the JSON form by which to sort, such as node.", show_default=False)
]
NoHeaders = Annotated[bool, typer.Option("--no-headers", help="Omit the header row.")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Keep watching and print changed rows until Ctrl-C.")]
LocalGpuOption = Annotated[
    str,
    typer.Option(
        "--gpu",
        help="GPU to use, by index or UUID as in nvidia-smi. Defaults to the first one of CUDA_VISIBLE_DEVICES, or 0.",
        show_default=False,
    ),
]
Local = Annotated[
    bool,
    typer.Option("--local", help="Of this machine, without Kubernetes. Without a cluster, that is what is shown."),
]
Simulate = Annotated[
    str,
    typer.Option(
        "--simulate",
        help="Use a simulated GPU instead of the installed driver: MODEL, MODEL@12.4 for a CUDA version, or 2xMODEL "
        "for two GPUs.",
    ),
]
_LAMINA_NAMESPACE = ContextVar("_LAMINA_NAMESPACE", default="")
ANSWER_OUTPUTS = ("text", "json", "yaml")


def lamina_namespace() -> str:
    """What `lamina --lamina-namespace` names; empty without it."""
    return _LAMINA_NAMESPACE.get()


def component_namespace() -> str:
    """The namespace of a component: the one that this invocation names, or the default."""
    return lamina_namespace() or DEFAULT_NAMESPACE


def set_lamina_namespace(name: str) -> None:
    """What the option of this invocation names. Raises BadInput."""
    check_namespace(name, "--lamina-namespace")
    _LAMINA_NAMESPACE.set(name)


def check_namespace(name: str, option: str) -> None:
    """Raises BadInput for what no namespace is named; an empty name names none."""
    if name and not is_namespace_name(name):
        raise BadInput(f"{option} must be the name of a namespace, got {name!r}")


def one_of(value: str, allowed: Sequence[str], option: str) -> None:
    """Raises BadInput for a value that the option does not take."""
    if value not in allowed:
        raise BadInput(f"{option} must be one of {', '.join(allowed)}, got {value!r}")


def with_options_of(more: Callable[..., None], command: Callable[..., Any]) -> Callable[..., None]:
    """`more` as a command, with the options of `command` except for its first parameter, then its own. It gets those of
    `command` as keywords."""
    own = [each for each in inspect.signature(more).parameters.values() if each.kind is not each.VAR_KEYWORD]
    parameters = [*list(inspect.signature(command).parameters.values())[1:], *own]
    # typer reads a command's options from these.
    more.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    more.__annotations__ = {each.name: each.annotation for each in parameters}
    more.__doc__, more.__name__ = command.__doc__, command.__name__
    return more
