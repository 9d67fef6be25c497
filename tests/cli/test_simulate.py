"""`lamina simulate` as a user calls it."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from lamina.cli.main import app
from lamina.errors import BadInput

CLUSTER = str(Path(__file__).parents[2] / "examples" / "simulation" / "cluster.yaml")


def run(*options: str) -> str:
    result = CliRunner().invoke(app, ["simulate", "--nodes", CLUSTER, "--pods", CLUSTER, *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_policies_are_compared_and_waiting_pods_say_why(tmp_path: Path) -> None:
    picture, data = tmp_path / "course.svg", tmp_path / "all.json"
    told = run("--policy", "binpack", "--policy", "spread", "--picture", str(picture), "--json", str(data))
    assert "5 pods on 2 nodes with 4 GPUs" in told
    rows = {
        line.split()[0]: line.split()[-2:] for line in told.splitlines() if line.startswith(("binpack ", "spread "))
    }
    assert set(rows) == {"binpack", "spread"}
    results = json.loads(data.read_text())
    assert [result["policy"] for result in results] == ["binpack", "spread"]
    assert all(result["placed"] + len(result["waiting"]) == 5 for result in results)
    lines = ElementTree.parse(picture).getroot().findall("{http://www.w3.org/2000/svg}polyline")
    widths = [line.get("stroke-width") for line in lines]
    assert (widths.count("4"), widths.count("2")) == (2, 2), "two policies in two panels, the second thinner"


def test_what_if_there_were_more_or_no_sharing() -> None:
    assert "5 pods on 2 nodes with 12 GPUs" in run("--remove-nodes", "plain", "--add-nodes", "1:T4:10")
    assert "1 pods wait" in run("--policy", "binpack", "--mode", "whole")
    assert "pods wait" not in run("--policy", "binpack", "--mode", "whole", "--add-nodes", "1:T4:1")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--mode", "mig"), "--mode is 'mig'; allowed is quota or whole"),
        (("--policy", "best"), "there is no policy 'best'"),
        (("--remove-nodes", "*"), "no node is left"),
        (("--picture", "absent/x.svg"), "--picture absent/x.svg cannot be written: No such file or directory"),
        (("--json", "absent/x.json"), "--json absent/x.json cannot be written: No such file or directory"),
        (("--config", "absent.yaml"), "--config absent.yaml cannot be read: No such file or directory"),
    ],
)
def test_what_makes_no_sense_is_refused(options: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        run(*options)
