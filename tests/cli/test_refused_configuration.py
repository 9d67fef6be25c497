"""While the ConfigMap is refused, commands that read use the configuration in force and say so."""

import pytest

from lamina.ports.kube import CONFIG_MAPS, RESOURCE_QUOTAS, Object
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.worlds.clusters import cluster, container, grant, inventory, pod
from tests.worlds.objects import config_map

MISSPELLED = "hami: {deviceSplitCont: 5}"
REFUSAL = "ConfigMap lamina-system/lamina: unknown key deviceSplitCont in hami; did you mean deviceSplitCount?"
WARNING = f"Warning: the previous configuration is in force: {REFUSAL}"
RENAMED = "hami: {resourceCountName: example.com/gpu, resourceMemoryName: example.com/mem}"


async def refused(*pods: Object, in_force: str | None = "") -> FakeKube:
    kube = await cluster(inventory("n", 2), *pods)
    await kube.create(CONFIG_MAPS, config_map(MISSPELLED, in_force))
    return kube


@pytest.mark.parametrize("command", ["pods", "why waits", "quotas", "advise defrag"])
@pytest.mark.parametrize("in_force", ["", None, "not: valid"])
async def test_a_command_that_reads_goes_on_and_warns(
    command: str, in_force: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs, waits = pod("runs", container(gpu=1), node="n"), pod("waits", container(gpu=1, gpumem=99999))
    kube = await refused(runs, waits, grant(runs, "n", 1000), in_force=in_force)
    hard = {"hard": {"limits.nvidia.com/gpumem": "5k"}}
    await kube.create(RESOURCE_QUOTAS, {"metadata": {"name": "q", "namespace": "default"}, "spec": hard})
    ended = await Commands(monkeypatch, kube).run(*command.split())
    assert ended.code == (1 if command.startswith("why") else 0) and WARNING in ended.output.splitlines()
    assert len(ended.output.splitlines()) > 1


async def test_pods_are_read_by_the_names_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = pod(
        "waits", {"name": "main", "resources": {"limits": {"example.com/gpu": "1", "example.com/mem": "99999"}}}
    )
    ended = await Commands(monkeypatch, await refused(waits, in_force=RENAMED)).run("why", "waits")
    assert "waits is pending: node n: needs 99999 MiB" in ended.output


async def test_the_doctor_goes_on_and_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster()
    await kube.create(CONFIG_MAPS, config_map(MISSPELLED, ""))
    ended = await Commands(monkeypatch, kube).run("doctor")
    assert ended.code == 1
    assert [row[:2] for row in ended.rows if row[0] == "configuration"] == [["configuration", "failed"]]
    assert REFUSAL in ended.output and "configuration: correct it with kubectl -n lamina-system edit" in ended.output


async def test_a_misspelled_data_key_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(inventory("n", 2), pod("waits", container(gpu=1)))
    meta = {"name": "lamina", "namespace": "lamina-system"}
    await kube.create(CONFIG_MAPS, {"metadata": meta, "data": {"lamina.yaml": "", "lamina.yml": "x: 1"}})
    ended = await Commands(monkeypatch, kube).run("pods")
    assert "ConfigMap lamina-system/lamina: unknown data key lamina.yml; rename it to lamina.yaml" in ended.output
