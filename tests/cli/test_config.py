"""`lamina config convert` prints Lamina's own form of a configuration."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lamina.cli.main import app
from lamina.configuration import load
from lamina.errors import BadInput

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "configuration"


def convert(path: Path) -> str:
    result = CliRunner().invoke(app, ["config", "convert", str(path)])
    if result.exception is not None:
        raise result.exception
    return result.output


@pytest.mark.parametrize("name", ["4paradigm.yaml", "mig-on-demand.yaml", "mps.yaml"])
def test_what_is_printed_means_the_same(name: str) -> None:
    printed = convert(EXAMPLES / name)
    assert printed.startswith("apiVersion: lamina.dev/v1alpha1\nkind: Configuration\n")
    assert load(printed, name) == load((EXAMPLES / name).read_text(), name)


def test_our_own_form_stays_as_it_is(tmp_path: Path) -> None:
    once = convert(EXAMPLES / "v1alpha1" / "mig-on-demand.yaml")
    again = tmp_path / "again.yaml"
    again.write_text(once)
    assert convert(again) == once


def test_a_configuration_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lamina.yaml"
    path.write_text("hami: {resourceCoreName: nvidia.com/gpu}")
    with pytest.raises(BadInput, match="must be different names"):
        convert(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read .*missing\.yaml: No such file or directory"):
        convert(tmp_path / "missing.yaml")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "lamina.yaml"
    path.write_bytes(b"\xff")
    with pytest.raises(BadInput, match=r"lamina\.yaml is not UTF-8 text"):
        convert(path)


NVIDIAS = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n"


def test_s3_8_a_file_of_nvidias_plugin_is_converted_with_notes_as_comments(tmp_path: Path) -> None:
    path = tmp_path / "dp-example-config.yaml"
    path.write_text(NVIDIAS)
    printed = convert(path)
    comments = [line for line in printed.splitlines() if line.startswith("#")]
    assert "# default: each nvidia.com/gpu is offered as 2 replicas by time-slicing, as nvidia.com/gpu" in comments
    assert list(load(printed, "c").native_devices.configs) == ["default"]


def test_s3_8_a_check_of_it_says_what_it_does(tmp_path: Path) -> None:
    path = tmp_path / "dp-example-config.yaml"
    path.write_text(NVIDIAS)
    checked = CliRunner().invoke(app, ["config", "check", str(path)])
    assert checked.exit_code == 0
    first, *others = checked.output.splitlines()
    assert first.startswith(f"{path} is valid: a file of NVIDIA's device plugin.")
    assert (
        "  default: applies to all nodes but those whose label nvidia.com/device-plugin.config names another file"
        in (others)
    )
    assert "  nativeDevices:" in others
    path.write_text(NVIDIAS.replace("2", "1"))
    checked = CliRunner().invoke(app, ["config", "check", str(path)])
    assert isinstance(checked.exception, BadInput)
    assert "number of replicas must be >= 2" in str(checked.exception)
