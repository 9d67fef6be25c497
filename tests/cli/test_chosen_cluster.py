"""Every command that reaches a cluster takes the same options, and says what is wrong with the cluster they name."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from lamina.cli.completion import nested_in
from lamina.cli.main import app
from lamina.ports.kube import DEPLOYMENTS
from lamina.ports.kube.client import cluster_name, context_namespace
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.worlds.clusters import cluster, container, grant, inventory, pod

OTHERS = {"agent", "controller", "admission", "mps", "lab up"}
"""Components, whose account names the cluster, and what writes a kubeconfig."""


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """Each command with its options."""
    yield " ".join(words), {name for parameter in command.params for name in parameter.opts}
    for name, nested in nested_in(command).items():
        yield from commands(nested, (*words, name))


def test_who_takes_a_kubeconfig_takes_a_context() -> None:
    taking = {name: options for name, options in commands(typer.main.get_command(app)) if "--kubeconfig" in options}
    assert {"pods", "why", "mig list", "mig apply", "cordon gpu", "uninstall", "reset", "install"} <= taking.keys()
    assert {name for name, options in taking.items() if "--context" not in options} <= OTHERS


def test_who_lists_namespaces_takes_one_or_all() -> None:
    found = dict(commands(typer.main.get_command(app)))
    for name in ("pods", "quotas", "cost", "advise shares", "advise idle"):
        assert {"-n", "--namespace", "-A", "--all-namespaces"} <= found[name], name


def test_a_context_chooses_server_and_namespace(tmp_path: Path) -> None:
    contexts = [{"name": name, "context": {"cluster": name, "namespace": f"of-{name}"}} for name in ("a", "b")]
    clusters = [{"name": name, "cluster": {"server": f"https://{name}"}} for name in ("a", "b")]
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump({"clusters": clusters, "contexts": contexts, "current-context": "a"}))
    assert [context_namespace(path), context_namespace(path, "b")] == ["of-a", "of-b"]
    assert [cluster_name(path), cluster_name(path, "b")] == ["https://a (context a)", "https://b (context b)"]


@pytest.mark.parametrize("command", ["uninstall", "reset"])
async def test_what_removes_names_the_chosen_cluster(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await Commands(monkeypatch, FakeKube()).run(command, "--dry-run", "--context", "prod")
    assert ended.output.startswith("Cluster: https://server (context prod)\n")


@pytest.mark.parametrize("command", ["pods -n absent", "quotas -n absent", "why p -n absent", "resize p --memory 1Gi"])
async def test_a_namespace_that_does_not_exist(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await Commands(monkeypatch, await cluster(inventory("n")), namespace="absent").run(*command.split())
    assert (ended.code, ended.error) == (
        2,
        "there is no namespace absent; `kubectl get namespaces` lists them",
    )


@pytest.mark.parametrize("command", ["why web", "resize web --memory 1Gi"])
async def test_the_name_of_a_workload_is_recognized(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"))
    await kube.create(DEPLOYMENTS, {"metadata": {"name": "web", "namespace": "default"}, "spec": {}})
    ended = await Commands(monkeypatch, kube).run(*command.split())
    assert (ended.code, ended.error) == (2, "there is no pod web in namespace default; did you mean deploy/web?")


async def test_a_misspelled_pod_is_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"), pod("trainer-0", container(gpu=1)))
    assert (await Commands(monkeypatch, kube).run("why", "trainer-O")).error.endswith("; did you mean trainer-0?")


async def test_why_has_cause_amounts_and_ways_out_as_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, waits = pod("runs", container(gpu=1, gpumem=12000), node="n"), pod("w", container(gpu=1, gpumem=5000))
    kube = await cluster(inventory("n"), inventory("m", 0), runs, grant(runs, "n", 12000), waits)
    plain = (await Commands(monkeypatch, kube).run("why", "w")).output.splitlines()
    document = json.loads((await Commands(monkeypatch, kube).run("why", "w", "-o", "json")).output)
    [answer] = document["pods"]
    nearest = {"nodes": ["n"], "cause": "memory", "needed": 5000, "free": 3360, "unit": "MiB", "lasting": False}
    assert answer["nearest"].items() >= nearest.items() and answer["nearest"]["reason"].startswith("needs 5000 MiB;")
    assert [each["cause"] for each in answer["nodes"]] == ["memory", "no-gpu"]
    assert (answer["pod"], answer["cause"]) == ("w", "nodes")
    assert answer["waysOut"][0] == "It would fit now with at most 3360 MiB, on node n."
    assert plain == document["lines"] and plain[-3] == "What would help:"
    assert [line.strip() for line in plain[-2:]] == answer["waysOut"]


async def test_a_pod_that_runs_has_no_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n"), pod("runs", container(gpu=1), node="n"))
    [answer] = json.loads((await Commands(monkeypatch, kube).run("why", "runs", "-o", "json")).output)["pods"]
    assert (answer["cause"], answer["nearest"], answer["nodes"], answer["waysOut"]) == ("", None, [], [])
