"""Values of the commands that other projects' documents print: each is answered by name, with what takes its place."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from lamina import configuration
from lamina.cli.main import app
from lamina.configuration.importers.values_of_others import REPLACED
from lamina.errors import BadInput
from lamina.install import values as install_values

OWN = msgspec.to_builtins(install_values.Values())
IN_CONFIGURATION = {
    "resourceName": "a.b/c",
    "resourceMem": "a.b/c",
    "resourceMemPercentage": "a.b/c",
    "resourceCores": "a.b/c",
    "resourcePriority": "a.b/c",
    "schedulerName": "mine",
    "scheduler.defaultMem": 5000,
    "scheduler.defaultCores": 10,
    "devicePlugin.deviceSplitCount": 4,
    "devicePlugin.deviceMemoryScaling": 3.0,
    "devicePlugin.deviceCoreScaling": 2.0,
    "devicePlugin.migStrategy": "mixed",
    "devicePlugin.disablecorelimit": "true",
    "devicePlugin.runtimeClassName": "nvidia",
    "devicePlugin.nvidianodeSelector": '{gpu: "on"}',
}


@pytest.mark.parametrize("path", REPLACED)
def test_s3_d_s4_d_each_is_named_with_what_takes_its_place(path: str) -> None:
    with pytest.raises(BadInput) as refused:
        install_values.read([], [f"{path}=x"])
    assert str(refused.value) == f"the values: {path} is a value of another chart; {REPLACED[path]}"
    text: Any = {path.rpartition(".")[2]: "x"}
    for key in reversed(path.split(".")[:-1]):
        text = {key: text}
    with pytest.raises(BadInput, match="is a value of another chart"):
        install_values.read([("theirs.yaml", msgspec.yaml.encode(text).decode())], [])


@pytest.mark.parametrize("path", REPLACED)
def test_none_of_them_is_a_value_of_this_chart(path: str) -> None:
    found: Any = OWN
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    assert found is None


@pytest.mark.parametrize("path", [path for path, instead in REPLACED.items() if instead == f"set config.{path}"])
def test_those_that_are_keys_of_the_configuration_are_read_there(path: str) -> None:
    read = install_values.read([], [f"config.{path}={IN_CONFIGURATION[path]}"])
    assert configuration.load(msgspec.yaml.encode(read.config).decode(), "c") != configuration.DEFAULT


@pytest.mark.parametrize(
    "command",
    [
        ["--set", "scheduler.kubeScheduler.imageTag=v1.20.4"],
        ["--set", "devicePlugin.deviceMemoryScaling=3.0", "--set", "scheduler.kubeScheduler.imageTag=v1.20.4"],
        ["--set", "gfd.enabled=true"],
        ["--set-file", "config.map.config=FILE"],
    ],
)
def test_s3_9_s4_3_the_printed_commands_are_answered(command: list[str], tmp_path: Path) -> None:
    file = tmp_path / "dp-example-config.yaml"
    file.write_text("version: v1\n")
    words = [word.replace("FILE", str(file)) for word in command]
    done = CliRunner().invoke(app, ["install", "--kube-version", "1.30", *words])
    assert isinstance(done.exception, BadInput) or "is a value of another chart" in done.output


def test_a_value_may_be_the_text_of_a_file(tmp_path: Path) -> None:
    read = install_values.read([], [], [("controller.extenderTlsSecret", "a"), ("scheduler.extenderTlsSecret", "a")])
    assert read.controller.extenderTlsSecret == "a"
    for wrong in ("image.tag", "image.tag=", "=x"):
        done = CliRunner().invoke(app, ["install", "--kube-version", "1.30", "--set-file", wrong])
        assert done.exit_code != 0
