"""Commands find the namespace of the installation by one record, and one option names it."""

from typing import Any

import pytest
import yaml

from lamina.install.names import PART_OF
from lamina.operations.installed import installation_record
from lamina.ports.kube import CLUSTER_ROLE_BINDINGS, CONFIG_MAPS, INVENTORIES, NAMESPACES, NODES, Object
from lamina.ports.kube.errors import Refused
from tests.cli.commands import IMAGE, Commands, VersionedKube
from tests.worlds.objects import gpus, inventory_object

OWN = "sharing: {slots: 7}\napiVersion: lamina.dev/v1alpha1\nkind: Configuration\n"
LABELED: dict[str, Any] = {"labels": dict(PART_OF)}


async def cluster(*records: Object) -> VersionedKube:
    """With a configuration in two namespaces: that of the first one says nothing."""
    kube = VersionedKube()
    for namespace, text in (("lamina-system", ""), ("gpu-sharing", OWN)):
        meta = {"name": "lamina", "namespace": namespace}
        await kube.create(CONFIG_MAPS, {"metadata": meta, "data": {"lamina.yaml": text}})
    for record in records:
        await kube.create(CLUSTER_ROLE_BINDINGS, record)
    return kube


def other_record(**changes: object) -> Object:
    return installation_record("gpu-sharing") | changes


async def test_the_record_names_the_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = await Commands(monkeypatch, await cluster(installation_record("gpu-sharing"))).run("config", "show")
    assert "# ConfigMap gpu-sharing/lamina, SHA-256" in shown.output and "slots: 7" in shown.output


@pytest.mark.parametrize(
    "records",
    [
        [],
        [other_record(metadata={"name": "lamina-controller"})],
        [other_record(subjects=None)],
        [other_record(subjects=[{"kind": "User", "name": "admin"}])],
        [other_record(subjects=[{"kind": "User", "name": "lamina-controller"}])],
    ],
    ids=["none", "of others", "without accounts", "of another account", "of a user"],
)
async def test_without_a_record_the_default_is_taken(monkeypatch: pytest.MonkeyPatch, records: list[Object]) -> None:
    shown = await Commands(monkeypatch, await cluster(*records)).run("config", "show")
    assert shown.output.startswith("# ConfigMap lamina-system/lamina, SHA-256")


async def test_who_may_not_read_the_record_is_told_what_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(installation_record("gpu-sharing"))
    kube.failing["get"] = lambda resource, _: Refused("forbidden") if resource == CLUSTER_ROLE_BINDINGS else None
    commands = Commands(monkeypatch, kube)
    shown = await commands.run("config", "show")
    assert "Warning: Lamina is taken to be in lamina-system, because forbidden; --lamina-namespace" in shown.output
    named = await commands.run("--lamina-namespace", "gpu-sharing", "config", "show")
    assert named.output.startswith("# ConfigMap gpu-sharing/lamina")
    monkeypatch.setenv("LAMINA_NAMESPACE", "gpu-sharing")
    assert (await commands.run("config", "show")).output == named.output


class WithoutPlace(VersionedKube):
    """An API server to which no question about the namespace of an installation may come."""

    @property  # type: ignore[override]
    def lamina_namespace(self) -> str:
        raise AssertionError("the namespace is not needed")

    @lamina_namespace.setter
    def lamina_namespace(self, _: str) -> None:
        """What a new server has."""


@pytest.mark.parametrize("command", ["cordon gpu node-0 0", "uncordon gpu node-0 0", "mig list", "mig list -o json"])
async def test_commands_that_do_not_need_the_namespace_do_not_ask(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    kube = WithoutPlace()
    await kube.create(NODES, {"metadata": {"name": "node-0"}})
    await kube.create(INVENTORIES, inventory_object("node-0", *gpus(1)))
    assert (await Commands(monkeypatch, kube).run(*command.split())).code == 0
    assert CLUSTER_ROLE_BINDINGS not in {resource for _, resource, _ in kube.calls}


@pytest.mark.parametrize("command", ["gpus", "pods", "config show", "mig apply node-0 all-disabled", "install"])
async def test_the_others_ask_once(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    kube = await cluster(installation_record("gpu-sharing"))
    await kube.create(NODES, {"metadata": {"name": "node-0"}})
    await kube.create(INVENTORIES, inventory_object("node-0", *gpus(1)))
    kube.calls.clear()
    await Commands(monkeypatch, kube).run(*command.split(), *(IMAGE if command == "install" else ()))
    assert [resource for _, resource, _ in kube.calls].count(CLUSTER_ROLE_BINDINGS) == 1


@pytest.mark.parametrize("name", ["Upper", "a.b", "a/b", "-", "x" * 64, " "])
@pytest.mark.parametrize("before", [True, False])
async def test_what_is_no_name_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, before: bool) -> None:
    commands = Commands(monkeypatch, await cluster())
    option = ("--lamina-namespace", name) if before else ("install", *IMAGE, "--namespace", name)
    ended = await commands.run(*option, *(("config", "show") if before else ()))
    assert (ended.code, ended.output) == (2, "")
    assert ended.error == f"{option[-2]} must be the name of a namespace, got {name!r}"


def documents(output: str) -> list[Object]:
    return list(
        yaml.safe_load_all(
            "\n".join(line for line in output.splitlines() if not line.startswith(("Warning", "Cluster: ")))
        )
    )


async def test_an_installation_is_rendered_for_its_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = Commands(monkeypatch, VersionedKube())
    namespace, *others = documents((await commands.run("install", *IMAGE, "-n", "gpu-sharing")).output)
    assert namespace["metadata"]["name"] == "gpu-sharing" and PART_OF.items() <= namespace["metadata"]["labels"].items()
    assert {each["metadata"].get("namespace") for each in others} == {None, "gpu-sharing", "kube-system"}
    offline = await commands.run("install", *IMAGE, "-n", "gpu-sharing", "--kube-version", "1.36.0")
    assert documents(offline.output) != [] and "lamina-system" not in offline.output


async def test_an_upgrade_stays_in_the_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await cluster(installation_record("gpu-sharing"))
    await kube.create(NAMESPACES, {"metadata": {"name": "gpu-sharing"} | LABELED})
    ended = await Commands(monkeypatch, kube).run("install", *IMAGE)
    assert documents(ended.output)[0]["metadata"]["name"] == "gpu-sharing"
    assert "Warning: ConfigMap gpu-sharing/lamina is left out" in ended.output


async def test_a_second_installation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await Commands(monkeypatch, await cluster(installation_record("gpu-sharing"))).run(
        "install", *IMAGE, "--namespace", "lamina-system"
    )
    assert (ended.code, ended.output) == (2, "")
    assert ended.error.startswith("Lamina is installed in the namespace gpu-sharing already, and a cluster has one")


async def test_a_namespace_of_others_is_kept_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = VersionedKube()
    await kube.create(NAMESPACES, {"metadata": {"name": "gpu-sharing"}})
    ended = await Commands(monkeypatch, kube).run("install", *IMAGE, "--namespace", "gpu-sharing")
    assert "Warning: the namespace gpu-sharing exists already" in ended.output
    assert "app.kubernetes.io/part-of" not in documents(ended.output)[0]["metadata"]["labels"]


async def test_a_configuration_of_kube_scheduler_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await Commands(monkeypatch, VersionedKube()).run(
        "--lamina-namespace", "gpu-sharing", "scheduler-config", "--kube-version", "1.36.0"
    )
    assert "lamina-system" not in ended.output
    assert "serverName: lamina-controller.gpu-sharing.svc" in ended.output
    assert "resourceNamespace: gpu-sharing" in ended.output
