"""Commands that remove something name the cluster and ask; without an answer nothing happens."""

import pytest
from typer.testing import CliRunner

from lamina.cli import terminal
from lamina.cli.main import app
from lamina.configuration import DEFAULT, load
from lamina.errors import BadInput
from lamina.operations.advise.mechanisms import TABLE, Needs, advise
from lamina.ports.kube import NODES
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands, Ended
from tests.cli.reset_cluster import half_gone

DESTRUCTIVE = (["reset", "--patience", "0"], ["uninstall", "--patience", "0", "--no-kubelets"])


class Recorded:
    """What a command changed."""

    def __init__(self, kube: FakeKube) -> None:
        self.changes: list[str] = []
        for verb in ("create", "replace", "patch", "delete"):
            kube.failing[verb] = lambda resource, name, verb=verb: self.changes.append(f"{verb} {resource.plural}")


async def changed_by(arguments: list[str], monkeypatch: pytest.MonkeyPatch, answers: str = "") -> tuple[Ended, int]:
    kube = await half_gone()
    recorded = Recorded(kube)
    ended = await Commands(monkeypatch, kube).run(*arguments, answers=answers)
    return ended, len(recorded.changes)


@pytest.mark.parametrize("command", DESTRUCTIVE, ids=lambda command: command[0])
async def test_a_destructive_command_names_the_cluster_and_takes_no_for_an_answer(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, changes = await changed_by(command, monkeypatch, answers="n\n")
    assert (ended.code, changes) == (0, 0)
    assert ended.output.startswith("Cluster: https://server (context test)\n")
    assert "Continue? [y/N]" in ended.output and ended.output.endswith("Nothing was changed.\n")


@pytest.mark.parametrize("command", DESTRUCTIVE, ids=lambda command: command[0])
async def test_a_dry_run_changes_nothing_and_does_not_ask(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ended, changes = await changed_by([*command, "--dry-run"], monkeypatch)
    assert (ended.code, changes) == (0, 0) and ended.output.endswith("Dry run: nothing was changed.\n")
    assert "Continue?" not in ended.output


@pytest.mark.parametrize("command", DESTRUCTIVE, ids=lambda command: command[0])
async def test_without_an_answer_nothing_is_changed(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ended, changes = await changed_by(command, monkeypatch)
    assert (ended.code, changes) == (2, 0)
    assert ended.error == "no answer on standard input; use --yes or --dry-run"


@pytest.mark.parametrize(("extra", "answers"), [(["--yes"], ""), ([], "y\n")])
async def test_after_a_yes_the_command_acts(extra: list[str], answers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, changes = await changed_by([*DESTRUCTIVE[0], *extra], monkeypatch, answers=answers)
    assert ended.code == 0 and changes > 0


async def test_advise_without_answers_names_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await Commands(monkeypatch, FakeKube()).run("advise")
    assert ended.code == BadInput.exit_code
    assert ended.error.startswith("no answer on standard input; use the options --one-program, --vms, --renders,")


async def test_a_lab_is_not_uninstalled(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await half_gone()
    node = (await kube.list(NODES)).items[0]
    status = {"status": {"nodeInfo": {"containerRuntimeVersion": "lamina://0.1.0"}}}
    await kube.patch(NODES, node["metadata"]["name"], status, subresource="status")
    recorded = Recorded(kube)
    ended = await Commands(monkeypatch, kube).run("uninstall", "--yes", "--force")
    assert (ended.code, ended.error) == (2, "this cluster is a lab; `lamina lab down` removes it")
    assert not recorded.changes


@pytest.mark.parametrize(
    "text",
    ["hami: {migStrategy: mixed}", "{apiVersion: lamina.dev/v1alpha1, kind: Configuration, mig: {strategy: mixed}}"],
)
def test_the_recipe_for_mig_names_the_strategy_without_which_no_device_is_offered(text: str) -> None:
    recipe = advise(Needs(hardware=True, card="A100-40GB", memory_mib=3000))
    assert recipe.limits == {"nvidia.com/mig-1g.5gb": 1}
    assert "hami.migStrategy, or mig.strategy" in recipe.before and "to mixed" in recipe.before
    assert recipe.before.endswith("kubectl label node NODE nvidia.com/mig.config=all-1g.5gb")
    assert load(text, "c") != DEFAULT


def test_the_comparison_fits_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal.console, "_width", 80)
    lines = CliRunner().invoke(app, ["advise", "--table"]).output.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if not line.startswith(" ")] == [
        f"{mechanism.value}:" for mechanism in next(iter(TABLE.values()))
    ]
    monkeypatch.setattr(terminal.console, "_width", 400)
    assert len(CliRunner().invoke(app, ["advise", "--table"]).output.splitlines()) == 1 + len(TABLE)
