"""Lists of objects: one way to print, order and follow them, for all commands that list.

A command says what its rows are and how to read them; `list_command` adds the options, which are the same everywhere,
as kubectl has them.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import typer
from rich.table import Table

from lamina.cli.connection import ClusterChoice, with_cluster_or_here, with_installation
from lamina.cli.exit_codes import ExitCode
from lamina.cli.options import (
    Kubeconfig,
    KubeContext,
    NoHeaders,
    Output,
    Selector,
    SortBy,
    Watch,
    one_of,
    with_options_of,
)
from lamina.cli.terminal import console, print_document, print_table, say
from lamina.errors import BadInput, Outside
from lamina.name_hints import nearest
from lamina.operations.workloads import check_namespace
from lamina.ports.clock import Clock, SystemClock
from lamina.ports.kube import ConnectedKube
from lamina.ports.kube.selectors import label_selector

R = TypeVar("R", bound=msgspec.Struct)
EVERY_S = 3.0
"""Seconds between two readings of a list that is watched."""
_OUTPUTS = ("table", "wide", "json", "yaml", "name")


class ListForm(NamedTuple):
    """What the options of a list say."""

    output: str = "table"
    sort_by: str = ""
    headers: bool = True
    watch: bool = False


class ListKind(NamedTuple, Generic[R]):
    """What a command lists. `row` is the type of a row, whose fields are those of the JSON form."""

    row: type[R]
    table: Callable[[Sequence[R], bool], Table]
    """The table of rows, wide or not."""
    name: Callable[[R], str]
    """What `-o name` prints. Rows of one object have the same name."""
    title: Callable[[R], str]
    """What distinguishes a row from all others."""
    empty: str
    """The sentence for a list without rows."""
    notes: Callable[[Sequence[R]], Iterable[str]] = lambda rows: ()
    """Sentences after a table."""
    namespace: str = ""
    """The only namespace that is listed. Where it has no rows, the command checks that there is one."""


class ListReading(NamedTuple, Generic[R]):
    """The rows at one time, with sentences about all of them: after a table, and as warnings."""

    rows: Sequence[R]
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()


class ListedCluster(NamedTuple):
    """What a command that lists knows of its options before it reads the cluster."""

    selected: Callable[[Mapping[str, str]], bool] | None
    """Whether labels are selected; None where none are asked for."""
    choice: ClusterChoice


Read = Callable[[], Awaitable[ListReading[R]]]
Reading = Callable[[ClusterChoice, Callable[[ConnectedKube], Awaitable[None]]], None]


class ListQuery(NamedTuple, Generic[R]):
    """What is listed, and how it is read. A list that this machine has too says how it is read `here`."""

    kind: ListKind[R]
    read: Callable[[ConnectedKube], Awaitable[ListReading[R]]]
    here: Read[R] | None = None
    local: bool = False
    """Whether this machine is asked for where there is a cluster too."""
    reading: Reading = with_installation
    """How the cluster is reached: `with_cluster` where it does not matter where Lamina is installed."""


def list_command(command: Callable[..., ListQuery[R]]) -> Callable[..., None]:
    """The command with the options of lists after its own. `command` gets a ListedCluster first."""

    def listing(
        selector: Selector = "",
        output: Output = "table",
        sort_by: SortBy = "",
        no_headers: NoHeaders = False,
        watch: Watch = False,
        kubeconfig: Kubeconfig = None,
        context: KubeContext = "",
        **own: Any,
    ) -> None:
        selected = label_selector(selector) if selector else None
        choice = ClusterChoice(kubeconfig, context)
        kind, read, here, local, reading = command(ListedCluster(selected, choice), **own)
        form = ListForm(output, sort_by, not no_headers, watch)
        if here is None:
            list_objects(kind, form, choice, read, reading)
        else:
            list_from(
                kind,
                form,
                lambda listed: with_cluster_or_here(
                    choice, lambda kube: listed(lambda: read(kube)), lambda: listed(here), local=local
                ),
            )

    return with_options_of(listing, command)


def check(kind: ListKind[R], form: ListForm) -> None:
    """Raises BadInput for an output or a field that the list does not have."""
    one_of(form.output, _OUTPUTS, "--output")
    fields = _fields(kind)
    if form.sort_by and _field(form) not in fields:
        hint = nearest(_field(form), fields)
        raise BadInput(f"--sort-by must be one of {', '.join(fields)}, got {form.sort_by!r}{hint}")


def list_objects(
    kind: ListKind[R],
    form: ListForm,
    choice: ClusterChoice,
    read: Callable[[ConnectedKube], Awaitable[ListReading[R]]],
    reading: Reading = with_installation,
) -> None:
    """Print a list of a cluster and, if asked to, each row that changes until Ctrl-C. Raises BadInput, Outside."""

    async def of_cluster(kube: ConnectedKube) -> ListReading[R]:
        reading = await read(kube)
        if kind.namespace and not reading.rows:
            await check_namespace(kube, kind.namespace)
        return reading

    list_from(kind, form, lambda listed: reading(choice, lambda kube: listed(lambda: of_cluster(kube))))


def list_from(
    kind: ListKind[R], form: ListForm, source: Callable[[Callable[[Read[R]], Coroutine[Any, Any, None]]], None]
) -> None:
    """The same of any source, which is called with what prints the list, and calls that with how it is read."""
    check(kind, form)

    async def listed(read: Read[R]) -> None:
        reading = await read()
        _warn(reading.warnings)
        print_list(kind, form, reading.rows, reading.notes)
        if form.watch:
            await follow(kind, form, reading, read, SystemClock())

    try:
        source(listed)
    except KeyboardInterrupt:
        if not form.watch:
            raise
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def print_list(kind: ListKind[R], form: ListForm, rows: Sequence[R], notes: Iterable[str] = ()) -> None:
    """Print the rows in their form and order."""
    rows = _ordered(rows, form)
    if form.output in ("json", "yaml"):
        print_document(rows, form.output)
    elif form.output == "name":
        for name in dict.fromkeys(map(kind.name, rows)):
            say(name)
    else:
        if rows:
            _print_table(kind, form, rows)
        else:
            _say(kind.empty)
        for note in notes:
            _say(note)


async def follow(
    kind: ListKind[R],
    form: ListForm,
    first: ListReading[R],
    read: Callable[[], Awaitable[ListReading[R]]],
    clock: Clock,
) -> None:
    """Print each row that changes, comes or goes, until canceled.

    While the cluster does not answer, one sentence says so. Raises BadInput where the list exists no longer.
    """
    known, failure = {kind.title(row): row for row in first.rows}, ""
    while True:
        await clock.sleep(EVERY_S)
        try:
            rows = {kind.title(row): row for row in (await read()).rows}
        except Outside as error:
            if not failure:
                _warn([f"{error}; retrying"])
            failure = str(error)
            continue
        failure = ""
        _print_changes(kind, form, [row for title, row in rows.items() if known.get(title) != row])
        if form.output in ("table", "wide"):
            for title in known.keys() - rows.keys():
                _say(f"{title} is gone.")
        known = rows


def _print_changes(kind: ListKind[R], form: ListForm, rows: Sequence[R]) -> None:
    """The rows one by one as documents, or as lines of the table."""
    if form.output == "json":
        for row in rows:
            print_document(row, "json")
    elif form.output == "yaml":
        for row in rows:
            say("---")
            print_document(row, "yaml")
    elif rows:
        print_list(kind, form._replace(headers=False), rows)


def _print_table(kind: ListKind[R], form: ListForm, rows: Sequence[R]) -> None:
    table = kind.table(rows, form.output == "wide")
    table.show_header = form.headers
    print_table(console, table)
    for note in kind.notes(rows):
        _say(note)


def _ordered(rows: Sequence[R], form: ListForm) -> Sequence[R]:
    """The rows by the field that the form names: texts by alphabet, lists by length, what is not known last."""
    if not form.sort_by:
        return rows
    field = _field(form)
    return sorted(rows, key=lambda row: _rank(msgspec.to_builtins(row)[field]))


def _rank(value: Any) -> tuple[bool, Any]:
    if value is None:
        return True, 0
    return False, len(value) if isinstance(value, list | dict) else value


def _fields(kind: ListKind[R]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(kind.row))


def _field(form: ListForm) -> str:
    """Also as kubectl writes it: `.node` and `{.node}`."""
    return form.sort_by.removeprefix("{").removesuffix("}").removeprefix(".")


def _say(sentence: str) -> None:
    console.print(sentence, markup=False, soft_wrap=True)


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        say(f"Warning: {sentence}", err=True)
