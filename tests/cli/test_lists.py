"""Lists are printed, ordered, selected and followed the same way by all commands that list."""

import asyncio
import json
from collections.abc import Sequence

import pytest
import yaml
from msgspec import Struct
from rich.table import Table

from lamina.cli import terminal
from lamina.cli.lists import EVERY_S, ListForm, ListKind, ListReading, follow
from lamina.errors import BadInput, Outside
from lamina.ports.clock import FakeClock
from lamina.ports.kube import NODES, RESOURCE_QUOTAS, Object
from lamina.ports.kube.fake import FakeKube
from lamina_lab.cluster.survey import LabSummary
from tests.cli.commands import Commands
from tests.waiting import canceled
from tests.worlds.clusters import cluster, container, grant, inventory, pod

LISTS = ("pods", "gpus", "quotas", "mig list")
NAMES = {
    "pods": ["pod/runs", "pod/waits"],
    "gpus": ["m/GPU-m-0", "n/GPU-n-0"],
    "quotas": ["resourcequota/q"],
    "mig list": ["node/n", "node/m"],
}
LABELED = {"pods": ["pod/runs"], "gpus": ["n/GPU-n-0"], "quotas": ["resourcequota/q"], "mig list": ["node/n"]}
HARD = {"limits.nvidia.com/gpumem": "5k", "limits.nvidia.com/gpucores": "50"}


async def labeled_cluster() -> FakeKube:
    """Of each kind one object has the label team=a, and another one has not."""
    runs, waits = pod("runs", container(gpu=1, gpumem=1000), node="n"), pod("waits", container(gpu=1, gpumem=99999))
    runs["metadata"]["labels"] = {"team": "a"}
    kube = await cluster(inventory("n"), inventory("m"), runs, waits, grant(runs, "n", 1000))
    for node, labels in (("n", {"team": "a"}), ("m", {})):
        await kube.patch(NODES, node, {"metadata": {"labels": {"nvidia.com/mig.config": "all-1g.5gb", **labels}}})
    meta = {"name": "q", "namespace": "default", "labels": {"team": "a"}}
    await kube.create(RESOURCE_QUOTAS, {"metadata": meta, "spec": {"hard": HARD}})
    return kube


@pytest.mark.parametrize("command", LISTS)
async def test_each_form_of_each_list(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commands, words = Commands(monkeypatch, await labeled_cluster()), command.split()
    as_json = json.loads((await commands.run(*words, "-o", "json")).output)
    assert as_json and yaml.safe_load((await commands.run(*words, "-o", "yaml")).output) == as_json
    assert (await commands.run(*words, "-o", "name")).output.splitlines() == NAMES[command]
    table = (await commands.run(*words)).output.splitlines()
    assert (await commands.run(*words, "--no-headers")).output.split() == " ".join(table[1:]).split()
    assert len((await commands.run(*words, "-o", "wide")).output) >= len("\n".join(table))


@pytest.mark.parametrize("command", LISTS)
async def test_a_selector_leaves_out_what_has_other_labels(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commands, words = Commands(monkeypatch, await labeled_cluster()), command.split()
    for selector in ("team=a", "team in (a, b)", "team,team!=b"):
        found = await commands.run(*words, "-l", selector, "-o", "name")
        assert found.output.splitlines() == LABELED[command], selector
    nothing = await commands.run(*words, "-l", "team notin (a),team")
    assert nothing.code == 0 and " these labels" in nothing.output
    wrong = await commands.run(*words, "-l", "team = a b")
    assert wrong.code == 2 and wrong.error.startswith("--selector has a term 'team = a b'; write terms such as a=b")


@pytest.mark.parametrize(
    ("command", "field", "first"),
    [
        ("pods", "status", "pod/waits"),
        ("pods", ".memoryMib", "pod/waits"),
        ("gpus", "{.memoryGrantedMib}", "m/GPU-m-0"),
        ("gpus", "pods", "m/GPU-m-0"),
        ("mig list", "name", "node/m"),
    ],
)
async def test_rows_are_sorted_by_a_field(
    command: str, field: str, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands(monkeypatch, await labeled_cluster())
    sorted_names = (await commands.run(*command.split(), "--sort-by", field, "-o", "name")).output.splitlines()
    assert sorted_names[0] == first and sorted(sorted_names) == sorted(NAMES[command])


@pytest.mark.parametrize("command", LISTS)
async def test_an_unknown_field_or_form_is_refused(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commands, words = Commands(monkeypatch, FakeKube()), command.split()
    field = await commands.run(*words, "--sort-by", "size")
    assert field.code == 2 and field.error.startswith("--sort-by must be one of ") and "got 'size'" in field.error
    form = await commands.run(*words, "-o", "xml")
    assert (form.code, form.error) == (2, "--output must be one of table, wide, json, yaml, name, got 'xml'")


async def test_pods_as_json_have_their_shares_and_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, waits = json.loads((await Commands(monkeypatch, await labeled_cluster()).run("pods", "-o", "json")).output)
    share = {"container": "main", "gpu": "GPU-n-0", "index": 0, "mode": "quota", "memoryMib": 1000}
    share |= {"limitMib": 1000, "computePercent": 0, "computeMeaning": "", "mig": "", "init": False}
    share |= {"usedMib": None, "peakMib": None}
    assert runs["shares"] == [share]
    assert (runs["node"], runs["memoryMib"], runs["reason"], waits["shares"]) == ("n", 1000, "", [])
    assert waits["reason"].startswith("quota q allows 5000 of nvidia.com/gpumem")


def moving() -> Object:
    """A pod that may be moved."""
    owned = pod("owned", container(gpu=1, gpumem=1000), node="n")
    owned["metadata"]["ownerReferences"] = [{"controller": True}]
    return owned


@pytest.mark.parametrize(("command", "field"), [("doctor", "state"), ("mig profiles a100-40gb", "memoryMib")])
async def test_lists_that_are_not_watched_have_the_same_forms(
    command: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands, words = Commands(monkeypatch, FakeKube()), command.split()
    as_json = json.loads((await commands.run(*words, "-o", "json", "--sort-by", field)).output)
    assert yaml.safe_load((await commands.run(*words, "-o", "yaml", "--sort-by", field)).output) == as_json
    assert len({row[field] for row in as_json}) > 1
    assert [row[field] for row in as_json] == sorted(row[field] for row in as_json)
    assert len((await commands.run(*words, "-o", "name")).output.splitlines()) == len(as_json)
    (head,) = [line for line in (await commands.run(*words)).output.splitlines() if line.isupper()]
    assert head not in (await commands.run(*words, "--no-headers")).output
    assert (await commands.run(*words, "--sort-by", "absent")).error.startswith("--sort-by must be one of ")


async def test_labs_are_listed_in_the_same_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    labs = [LabSummary(name, "ready", "https://127.0.0.1:1", nodes, 2, "/k") for name, nodes in (("a", 3), ("b", 1))]
    monkeypatch.setattr("lamina_lab.cluster.survey.survey", lambda: labs)
    commands = Commands(monkeypatch, FakeKube())
    assert (await commands.run("lab", "status", "--sort-by", "nodes", "-o", "name")).output.split() == ["b", "a"]
    assert [row["nodes"] for row in json.loads((await commands.run("lab", "status", "-o", "json")).output)] == [3, 1]
    assert (await commands.run("lab", "status", "--no-headers")).rows[0][:2] == ["a", "ready"]


async def test_moves_are_listed_instead_of_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    owned, stays = moving(), pod("stays", container(gpu=1, gpumem=1000), node="n")
    held = grant(owned, "n", 1000), grant(stays, "n", 1000, uuid="GPU-n-1")
    commands = Commands(monkeypatch, await cluster(inventory("n", 2), owned, stays, *held))
    assert json.loads((await commands.run("advise", "defrag", "-o", "json")).output) == [
        {
            "pod": "default/owned",
            "fromNode": "n",
            "fromGpus": [0],
            "toNode": "n",
            "toGpus": [1],
            "freesNode": "n",
            "freesGpu": 0,
        }
    ]
    assert (await commands.run("advise", "defrag", "-o", "name")).output == "default/owned\n"
    assert (await commands.run("advise", "defrag", "--no-headers")).rows == [
        ["default/owned", "n", "0", "n", "1", "GPU", "0", "of", "n"]
    ]
    assert (await commands.run("advise", "defrag")).output.endswith("1 GPU becomes idle after 1 move.\n")


class Thing(Struct):
    name: str
    size: int


def things(rows: Sequence[Thing], wide: bool) -> Table:
    table = Table("NAME", "SIZE", box=None)
    for row in rows:
        table.add_row(row.name, str(row.size))
    return table


KIND = ListKind(Thing, things, lambda row: f"thing/{row.name}", lambda row: f"thing {row.name}", "There is no thing.")
A, B = Thing("a", 1), Thing("b", 2)


class Followed:
    """A list that is watched: what each further reading brings, and what is printed from then on."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(terminal.console, "_width", 100)
        self._capsys = capsys
        self.readings: list[Sequence[Thing] | Exception] = []

    async def read(self) -> ListReading[Thing]:
        found = self.readings.pop(0)
        if isinstance(found, Exception):
            raise found
        return ListReading(found)

    async def printed(self, output: str, *readings: Sequence[Thing] | Exception) -> tuple[list[str], list[str]]:
        """The lines on standard output and on standard error."""
        self.readings[:] = readings
        clock = FakeClock()
        following = asyncio.ensure_future(follow(KIND, ListForm(output=output), ListReading([A, B]), self.read, clock))
        await clock.advance(EVERY_S * len(readings))
        if following.done():
            following.result()
        await canceled(following)
        assert not self.readings, "each is read after the pause"
        out, err = self._capsys.readouterr()
        return [" ".join(line.split()) for line in out.splitlines()], err.splitlines()


@pytest.fixture
def followed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Followed:
    return Followed(capsys, monkeypatch)


async def test_a_watched_list_prints_what_changes(followed: Followed) -> None:
    grown, new = Thing("b", 3), Thing("c", 4)
    assert await followed.printed("table", [A, B], [A, grown], [A, grown, new], [A, new]) == (
        ["b 3", "c 4", "thing b is gone."],
        [],
    )
    assert (await followed.printed("name", [A, grown], [A]))[0] == ["thing/b"]
    assert (await followed.printed("yaml", [A, grown]))[0] == ["---", "name: b", "size: 3"]
    assert json.loads("".join((await followed.printed("json", [A, grown]))[0])) == {"name": "b", "size": 3}


async def test_a_lost_connection_is_one_sentence_and_the_list_goes_on(followed: Followed) -> None:
    lost = Outside("the server does not answer")
    warning = "Warning: the server does not answer; retrying"
    assert await followed.printed("table", lost, lost, [A, Thing("b", 5)], lost) == (["b 5"], [warning, warning])


async def test_what_exists_no_longer_ends_a_watched_list(followed: Followed) -> None:
    with pytest.raises(BadInput, match="not installed"):
        await followed.printed("table", BadInput("Lamina is not installed in this cluster"))


async def test_ctrl_c_ends_a_watched_list_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lamina.cli.lists.follow", interrupted)
    ended = await Commands(monkeypatch, await labeled_cluster()).run("pods", "-w", "-o", "name")
    assert (ended.code, ended.output.splitlines()) == (130, NAMES["pods"])
