"""`lamina advise shares` and `lamina advise idle`."""

import json

import pytest
import yaml

from lamina.operations.advise.use_histories import HistoryOwner
from lamina.ports.kube import PODS
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.operations.advise.use_pages import history_lines, idle_line
from tests.operations.agent_pages import serve
from tests.worlds.clusters import cluster, container, grant, inventory, pod


async def used() -> FakeKube:
    """A pod that requests 8000 MiB and used 1000, and has been idle for two hours. One agent does not answer."""
    runs = pod("runs", container(gpu=1, gpumem=8000), node="n")
    kube = await cluster(inventory("n"), inventory("silent"), runs, grant(runs, "n", 8000))
    owner = HistoryOwner("default", "Pod", "runs", "main")
    page = history_lines("n", owner, peak_mib=1000, compute=20, observed_s=90_000)
    serve(kube, "n", page + idle_line("n", "runs", "GPU-n-0", 7200))
    return kube


async def test_what_workloads_could_request(monkeypatch: pytest.MonkeyPatch) -> None:
    _, row, gain, silent = (await Commands(monkeypatch, await used()).run("advise", "shares")).output.splitlines()
    assert " ".join(row.split()) == "default Pod/runs main 1 8000 MiB 1000 MiB 1280 MiB 0 % 20 % 0 %"
    assert gain == "This would free the memory of 0.4 GPUs and the compute of 0.0 GPUs." and "silent" in silent


async def test_pods_that_are_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, await used())
    assert " ".join((await commands.run("advise", "idle")).rows[1]) == "default runs Pod/runs n 0 8000 MiB 2.0 h"
    ended = await commands.run("advise", "idle", "--hours", "3")
    assert ended.output.startswith("No pod has been idle that long")


async def test_json_and_empty_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, await used())
    [row] = json.loads((await commands.run("advise", "shares", "-o", "json")).output)
    assert (row["memoryAdvisedMib"], row["coresAdvised"], row["shares"]) == (1280, 0, 1)
    [idle] = json.loads((await commands.run("advise", "idle", "-o", "json")).output)
    assert (idle["gpu"], idle["idleS"]) == ("GPU-n-0", 7200)
    assert "No workload requests more" in (await commands.run("advise", "shares", "--hours", "48")).output


@pytest.mark.parametrize("command", ["shares", "idle"])
async def test_advice_has_the_forms_of_lists(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, await used())
    as_json = json.loads((await commands.run("advise", command, "-o", "json", "--sort-by", "memoryMib")).output)
    assert yaml.safe_load((await commands.run("advise", command, "-o", "yaml")).output) == as_json
    assert (await commands.run("advise", command, "-o", "name")).output == "pod/runs\n"
    assert "NAMESPACE" not in (await commands.run("advise", command, "--no-headers")).output
    assert (await commands.run("advise", command, "-o", "tree")).code == 2
    assert (await commands.run("advise", command, "--sort-by", "absent")).error.startswith("--sort-by must be one of ")


@pytest.mark.parametrize("command", ["shares", "idle"])
async def test_only_pods_with_the_labels_are_advised_on(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await used()
    await kube.patch(PODS, "runs", {"metadata": {"labels": {"app": "web"}}}, namespace="default")
    commands = Commands(monkeypatch, kube)
    assert len((await commands.run("advise", command, "-l", "app=web", "-o", "name")).output.splitlines()) == 1
    assert (await commands.run("advise", command, "-l", "app!=web", "-o", "name")).output == ""


async def test_nodes_without_figures_are_named_also_where_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, silent = (await Commands(monkeypatch, await used()).run("advise", "idle", "--hours", "9")).output.splitlines()
    assert silent.startswith("The use on 1 node is not known, first silent: ")
