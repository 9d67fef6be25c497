"""`lamina install` names what would go wrong with an apply, and keeps a configuration edited in the cluster."""

import re
from pathlib import Path

import pytest
import yaml

from lamina.ports.kube import CONFIG_MAPS
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import IMAGE, Commands, Ended, VersionedKube

EDITED = "# by hand\ndevicePlugin:\n  deviceSplitCount: 5\n"


async def installed(monkeypatch: pytest.MonkeyPatch, text: str, *arguments: str) -> Ended:
    """What the command prints for a cluster whose ConfigMap has this text."""
    kube = VersionedKube()
    meta = {"name": "lamina", "namespace": "lamina-system"}
    await kube.create(CONFIG_MAPS, {"metadata": meta, "data": {"lamina.yaml": text}})
    return await Commands(monkeypatch, kube).run("install", *IMAGE, *arguments)


def configuration(ended: Ended) -> list[str]:
    """The text of the ConfigMap, if it is printed."""
    documents = yaml.safe_load_all(
        "\n".join(line for line in ended.output.splitlines() if line.partition(":")[0] not in ("Warning", "Cluster"))
    )
    return [
        each["data"]["lamina.yaml"]
        for each in documents
        if each["kind"] == "ConfigMap" and each["metadata"]["name"] == "lamina"
    ]


@pytest.mark.parametrize("arguments", [(), ("--set", "image.tag=v7"), ("--set", "image.repository=lamina")])
async def test_an_image_of_no_registry_is_refused(monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    ended = await Commands(monkeypatch, FakeKube()).run("install", *arguments, "--kube-version", "1.30.0")
    assert (ended.code, ended.output) == (2, "")
    assert "image.repository must name a registry" in ended.error


async def test_an_old_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    old = await Commands(monkeypatch, FakeKube()).run("install", *IMAGE, "--kube-version", "1.19")
    assert (old.code, old.output) == (2, "")
    assert old.error == "Kubernetes 1.19 is too old; Lamina needs 1.20 or newer"


async def test_an_edited_configuration_stays_and_a_new_version_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await installed(monkeypatch, EDITED)
    assert ended.code == 0 and configuration(ended) == []
    assert "Warning: ConfigMap lamina-system/lamina is left out and stays as it is" in ended.output
    assert "Warning: Kubernetes 1.45 is newer than 1.36" in ended.output


async def test_values_replace_the_configuration_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await installed(monkeypatch, EDITED, "--set", "config.devicePlugin.deviceSplitCount=7")
    assert [yaml.safe_load(each) for each in configuration(ended)] == [{"devicePlugin": {"deviceSplitCount": 7}}]
    assert "Warning: ConfigMap lamina-system/lamina is replaced" in ended.output


@pytest.mark.parametrize(
    "values",
    [(), ("--set", "agent.mps=true", "--set", "dashboard.enabled=true", "--set", "scheduler.image.repository=r/kube")],
)
async def test_the_images_are_those_of_the_manifests(monkeypatch: pytest.MonkeyPatch, values: tuple[str, ...]) -> None:
    arguments = ("install", *IMAGE, *values, "--kube-version", "1.36.2")
    rendered = (await Commands(monkeypatch, FakeKube()).run(*arguments)).output
    listed = (await Commands(monkeypatch, FakeKube()).run(*arguments, "--list-images")).output.splitlines()
    pulled = re.findall(r"^ *(?:- )?image: (\S+)$", rendered, re.MULTILINE)
    assert len(listed) == 2
    assert sorted(listed) == sorted({image.strip("'\"") for image in pulled})


async def test_a_chart_has_no_list_of_images(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ended = await Commands(monkeypatch, FakeKube()).run("install", "--chart", str(tmp_path / "c"), "--list-images")
    assert (ended.code, ended.output) == (2, "")
    assert "--chart cannot be combined" in ended.error
