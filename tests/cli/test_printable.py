"""What tenants wrote is no command to the terminal of a person who looks at it, whichever command prints it."""

import ast
import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from rich.table import Table
from typer.testing import CliRunner

import lamina.cli
from lamina.cli import main as cli
from lamina.cli import resize
from lamina.cli.printable import printable, printable_json, printable_lines
from lamina.cli.terminal import console, print_document, print_table, say
from lamina.core.gpus import Inventory
from lamina.errors import BadInput, Outside
from lamina.ports.kube import EVENTS, NODES, RESOURCE_QUOTAS
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.worlds.clusters import cluster, container, grant, inventory, pod

HOSTILE = "done main=1\x1b[2J\x1b]0;owned\x07\r\x9b1mPod \u202eb"
SOURCES = sorted(Path(lamina.cli.__file__).parent.rglob("*.py"))
BEHIND = {"terminal.py": 4, "live_terminal.py": 0}
"""What prints, with its calls of functions that print anything: of documents, and of what is printable already."""
COMMANDS = (
    "pods -A", "pods -A -o wide", "pods -A -o json", "pods -A -o yaml", "pods -A -o name", "gpus",
    "gpus -o wide", "gpus -o json", "quotas", "quotas -o yaml", "mig list", "why {pod}", "why {pod} -o json",
    "why {pod} -o yaml", "why deploy/{pod}", "resize {pod} --memory 1Gi", "top --once", "cost", "doctor --all",
    "doctor -o json", "config show", "config show --file {file}", "config check {file}",
    "config convert {file}", "config diff {file}", "fits -f {file}", "simulate --nodes {file} --pods {file}",
    "defrag", "reset --dry-run", "uninstall --dry-run", "install --values {file}", "cordon {pod} {pod}",
    "uncordon {pod} {pod}", "advise", "ps", "run --gpu {pod} true", "pods -n {pod}", "pods --sort-by {pod}",
    "{pod}",
)  # fmt: skip
UNPRINTABLE = ["\x1bc", "\x9b2J", "a\rb", "\x08", "\x7f", "\u2028", "\u202e", "\ud800", "\ufe0f", "\U000e0101"]


def is_printable(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("hostile", [HOSTILE, *UNPRINTABLE])
def test_only_lines_and_printable_characters_are_left(hostile: str) -> None:
    assert printable(hostile).isprintable() and printable(f"a\n{hostile}").isprintable()
    shown = printable_lines(f"a\n{hostile}")
    assert shown.startswith("a\n") and is_printable(shown) and printable_lines(shown) == shown
    written = json.dumps([hostile, {hostile: 1}], ensure_ascii=False, indent=2)
    assert is_printable(printable_json(written)) and json.loads(printable_json(written)) == json.loads(written)


@pytest.mark.parametrize("text", ["", "Pod a/b: done.", "zwei Zeilen\nmit ä und 日本"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert printable_lines(text) == text == printable_json(text)
    assert printable("a\u00a0b\tc") == "a b c"


@pytest.mark.parametrize("err", [False, True])
def test_each_way_to_print_is_closed_to_commands(err: bool, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("NAME", HOSTILE)
    table.add_row(HOSTILE, "b")
    with console.capture() as captured:
        console.print(HOSTILE, markup=False, soft_wrap=True)
        print_table(console, table)
    assert captured.get().count("owned") == 3 and is_printable(captured.get())
    say(HOSTILE, err=err)
    for form in ("json", "yaml"):
        print_document({HOSTILE: [HOSTILE]}, form)
    printed = capsys.readouterr()
    assert "owned" in (printed.err if err else printed.out) and is_printable(printed.err) and is_printable(printed.out)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_documents_mean_what_they_are_made_of(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    value = {HOSTILE: ["日本", "a\u00a0b", "\U000e0001"]}
    print_document(value, form)
    read = {"json": json.loads, "yaml": yaml.safe_load}[form]
    assert read(capsys.readouterr().out) == value


async def hostile_cluster() -> FakeKube:
    """All that tenants and nodes may write has commands in it."""
    runs, waits = (pod(f"{name}{HOSTILE}", container(name, gpu=1, gpumem=amount), node=node)
                   for name, amount, node in (("runs", 1000, HOSTILE), ("waits", 99999, "")))  # fmt: skip
    for each in (runs, waits):
        each["metadata"] |= {"labels": {HOSTILE: HOSTILE}, "annotations": {"lamina.dev/resize": HOSTILE}}
        each["spec"]["schedulerName"] = HOSTILE
        each["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": HOSTILE}]
    held = inventory(HOSTILE)
    bad = tuple(msgspec.structs.replace(gpu, healthy=False, reason=HOSTILE, model=HOSTILE) for gpu in held.gpus)
    kube = await cluster(held, Inventory(node="m", driver=HOSTILE, gpus=bad), runs, waits, grant(runs, HOSTILE, 1000))
    said = dict.fromkeys(("kubeletVersion", "containerRuntimeVersion", "kernelVersion", "osImage"), HOSTILE)
    for node in (HOSTILE, "m"):
        await kube.patch(NODES, node, {"status": {"nodeInfo": said}})
    await kube.patch(NODES, "m", {"metadata": {"labels": {"nvidia.com/mig.config": HOSTILE}}})
    kube.server = HOSTILE  # type: ignore[attr-defined]
    hard = {"limits.nvidia.com/gpumem": "5k"}
    await kube.create(RESOURCE_QUOTAS, {"metadata": {"name": HOSTILE, "namespace": "default"}, "spec": {"hard": hard}})
    event = {"metadata": {"name": "e", "namespace": "default"}, "involvedObject": {"uid": "u"}, "message": HOSTILE}
    await kube.create(EVENTS, event, namespace="default")
    return kube


@pytest.mark.parametrize("line", COMMANDS)
async def test_no_command_prints_commands_for_the_terminal(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in what it prints nor in the sentence with which it ends, whether it works or not."""
    file = tmp_path / f"a{HOSTILE.replace('/', '')}.yaml"
    file.write_text(yaml.safe_dump({"kind": HOSTILE, "metadata": {"name": HOSTILE}, HOSTILE: HOSTILE}))
    words = [word.format(pod=f"waits{HOSTILE}", file=file) for word in line.split()]
    ended = await Commands(monkeypatch, await hostile_cluster()).run(*words)
    assert is_printable(ended.output) and (ended.output or ended.error), ended


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_commands_print_through_these_ways_alone(source: Path) -> None:
    called = [ast.unparse(node.func) for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Call)]
    ways = ("print", "typer.echo", "typer.secho", "click.echo", "sys.stdout.write", "sys.stderr.write", "Console")
    assert sum(name in ways for name in called) == BEHIND.get(source.name, 0)


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
