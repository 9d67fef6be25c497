"""The commands that read or change a cluster: what they print, and what they end with."""

import json

import pytest
import yaml

from lamina.core.gpus import CORDON
from lamina.ports.kube import INVENTORIES, NAMESPACES, NODES, RESOURCE_QUOTAS, Kube, NotFound, Refused, Unreachable
from lamina.ports.kube.errors import LacksRight
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.worlds.clusters import cluster, container, grant, inventory, pod

READING = ("gpus", "pods", "quotas", "why p", "advise defrag", "dashboard")


async def small_cluster() -> FakeKube:
    runs = pod("runs", container(gpu=1, gpumem=1000), node="n")
    waits = pod("waits", container(gpu=1, gpumem=99999))
    plain, other = pod("plain", container()), pod("other", container(gpu=1, gpumem=99999), namespace="team")
    return await cluster(inventory("n", 2), runs, waits, plain, other, grant(runs, "n", 1000))


@pytest.mark.parametrize("command", READING)
async def test_without_lamina_a_command_says_so(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kube = FakeKube()
    kube.failing["list"] = lambda resource, name: NotFound("no such kind") if resource == INVENTORIES else None
    ended = await Commands(monkeypatch, kube).run(*command.split())
    assert ended.code == 2 and ended.error.startswith("Lamina is not installed in this cluster: ")


@pytest.mark.parametrize("command", [*READING, "mig list", "cordon gpu n 0", "mig apply n all-1g.5gb"])
async def test_an_api_server_that_does_not_answer_ends_with_3(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kube = FakeKube()
    for verb in ("get", "list", "patch"):
        kube.failing[verb] = lambda resource, name: Unreachable("the Kubernetes server does not answer")
    ended = await Commands(monkeypatch, kube).run(*command.split())
    assert (ended.code, ended.error) == (3, "the Kubernetes server does not answer")


async def test_a_connection_is_closed_also_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    class ClosingKube(FakeKube):
        async def close(self) -> None:
            closed.append(True)

    commands = Commands(monkeypatch, ClosingKube())
    await commands.run("pods")
    await commands.run("why", "absent")
    assert closed == [True, True]


async def test_pods_of_one_namespace_and_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, await small_cluster())
    reason = "node n: needs 99999 MiB; the largest GPU has 15360 MiB"
    silent = "No usage data from n: nodes 'n:9394' does not answer"
    assert (await commands.run("pods")).output.splitlines()[3:] == [f"(1) {reason}", silent]
    assert (await commands.run("pods")).rows[:3] == [
        ["POD", "STATUS", "NODE", "GPU", "MEMORY", "COMPUTE", "WHY"],
        ["runs", "Running", "n", "0", "1000", "MiB", "shared"],
        ["waits", "Pending", "(1)"],
    ]
    assert [row[:2] for row in (await commands.run("pods", "-A")).rows[:4]] == [
        ["NAMESPACE", "POD"],
        ["default", "runs"],
        ["default", "waits"],
        ["team", "other"],
    ]
    assert [row[0] for row in (await commands.run("pods", "-n", "team")).rows[:2]] == ["POD", "other"]


async def test_an_api_server_that_refuses_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = FakeKube()
    kube.failing["list"] = lambda resource, name: Refused("pods is forbidden")
    ended = await Commands(monkeypatch, kube).run("pods")
    assert (ended.code, ended.error) == (1, "pods is forbidden")


@pytest.mark.parametrize("command", ["gpus", "pods", "quotas", "why p", "advise defrag", "mig list", "cordon gpu n 0"])
async def test_where_a_right_is_missing_the_role_to_ask_for_is_named(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = 'x is forbidden: User "ml" cannot list resource "x" in API group "" at the cluster scope'
    kube = FakeKube()
    for verb in ("get", "list"):
        kube.failing[verb] = lambda resource, name: LacksRight(said)
    ended = await Commands(monkeypatch, kube).run(*command.split())
    assert ended.code == 4 and ended.error.startswith(f"{said}; ask for the cluster role lamina-view, ")
    assert "https://" in ended.error


async def test_why_ends_with_1_for_what_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    crashed = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "name": "main"}
    broken = pod("broken", container(gpu=1), node="n", status={"containerStatuses": [crashed]})
    ready = pod("ready", container(gpu=1), node="n", status={"phase": "Succeeded"})
    coming = pod("coming", container(gpu=1))
    commands = Commands(monkeypatch, await cluster(inventory("n", 2), broken, ready, coming))
    codes = {name: (await commands.run("why", name)).code for name in ("broken", "ready", "coming")}
    assert codes == {"broken": 1, "ready": 0, "coming": 1}


async def test_a_namespace_and_a_cluster_without_gpu_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(pod("plain", container()))
    await kube.create(NAMESPACES, {"metadata": {"name": "team"}})
    commands = Commands(monkeypatch, kube)
    assert (await commands.run("pods")).output == "No pod in namespace default requests a GPU.\n"
    assert (await commands.run("pods", "-n", "team")).output == "No pod in namespace team requests a GPU.\n"
    assert (await commands.run("pods", "--all-namespaces")).output == "No pod in this cluster requests a GPU.\n"


async def test_why_prints_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, await small_cluster())
    sentence = "waits is pending: node n: needs 99999 MiB; the largest GPU has 15360 MiB."
    first, *_ = help_lines = (await commands.run("why", "waits")).output.splitlines()
    assert first == sentence and help_lines[1] == "What would help:" and len(help_lines) > 2
    assert sentence.replace("waits", "other") in (await commands.run("why", "other", "-n", "team")).output
    missing = await commands.run("why", "other")
    assert (missing.code, missing.error) == (2, "there is no pod other in namespace default")


async def test_scripts_get_what_why_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, await small_cluster())
    ended = await commands.run("why", "waits", "-o", "json")
    document = json.loads(ended.output)
    assert [document[field] for field in ("namespace", "name", "runs")] == ["default", "waits", False]
    assert document["lines"][0] == "waits is pending: node n: needs 99999 MiB; the largest GPU has 15360 MiB."
    assert ended.code == 1
    runs = await commands.run("why", "runs", "-o", "yaml")
    assert (runs.code, yaml.safe_load(runs.output)["runs"]) == (0, True)
    assert (await commands.run("why", "runs", "-o", "wide")).code == 2


async def test_quotas_show_what_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await small_cluster()
    commands = Commands(monkeypatch, kube)
    none = "No quota in this cluster limits GPU memory or compute.\n"
    assert (await commands.run("quotas")).output == none
    other = {"metadata": {"name": "cpu", "namespace": "default"}, "spec": {"hard": {"limits.cpu": "5"}}}
    await kube.create(RESOURCE_QUOTAS, other)
    assert (await commands.run("quotas")).output == none
    hard = {"limits.nvidia.com/gpumem": "5k", "limits.nvidia.com/gpucores": "50", "limits.cpu": "8"}
    for namespace in ("default", "team"):
        await kube.create(RESOURCE_QUOTAS, {"metadata": {"name": "q", "namespace": namespace}, "spec": {"hard": hard}})
    assert (await commands.run("quotas")).rows == [
        ["NAMESPACE", "QUOTA", "RESOURCE", "USED", "HARD"],
        ["default", "q", "nvidia.com/gpumem", "1000", "5k"],
        ["default", "q", "nvidia.com/gpucores", "0", "50"],
        ["team", "q", "nvidia.com/gpumem", "0", "5k"],
        ["team", "q", "nvidia.com/gpucores", "0", "50"],
    ]


async def cordoned(kube: Kube) -> str:
    return str(((await kube.get(NODES, "n"))["metadata"].get("annotations") or {}).get(CORDON, ""))


async def test_a_gpu_is_cordoned_and_uncordoned(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await small_cluster()
    commands = Commands(monkeypatch, kube)
    assert (await commands.run("cordon", "gpu", "n", "1")).output == "GPU GPU-n-1 of node n is cordoned.\n"
    assert await cordoned(kube) == "GPU-n-1"
    output = (await commands.run("uncordon", "gpu", "n", "GPU-n-1")).output
    assert output == "GPU GPU-n-1 of node n is no longer cordoned.\n" and await cordoned(kube) == ""
    wrong = await commands.run("cordon", "gpu", "n", "2")
    assert wrong.code == 2 and wrong.error.startswith("node n has no GPU 2; its GPUs are: 0 (GPU-n-0), 1 (GPU-n-1)")


async def test_no_node_with_mig_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, await small_cluster())
    expected = "No node has MIG devices or a requested MIG configuration.\n"
    assert (await commands.run("mig", "list")).output == expected


async def test_a_doctor_that_finds_a_fault_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await Commands(monkeypatch, FakeKube()).run("doctor")
    assert ended.code == 1 and ended.rows[0][1] == "checks:" and ended.rows[1] == ["CHECK", "STATE", "FOUND"]
    assert not any("ok" in row[:4] for row in ended.rows[2:])
    everything = await Commands(monkeypatch, FakeKube()).run("doctor", "--all")
    assert len(everything.rows) > len(ended.rows)
    only = await Commands(monkeypatch, FakeKube()).run("doctor", "--failed", "-o", "json")
    assert {each["state"] for each in json.loads(only.output)} == {"failed"}
    assert (await Commands(monkeypatch, FakeKube()).run("doctor", "--failed", "--all")).code == 2
    failed = [row[0] for row in ended.rows if "failed" in row]
    fixes = [line.partition(":")[0] for line in ended.output.splitlines() if ": " in line and line.endswith(".")]
    assert failed and set(failed) & {fix.split()[0] for fix in fixes}
