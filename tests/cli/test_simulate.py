"""`lamina simulate` as a user calls it."""

import json
import re
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
    reported = run("--policy", "binpack", "--policy", "spread", "--picture", str(picture), "--json", str(data))
    assert "5 pods on 2 nodes with 4 GPUs" in reported
    rows = {
        line.split()[0]: line.split()[-2:] for line in reported.splitlines() if line.startswith(("binpack ", "spread "))
    }
    assert set(rows) == {"binpack", "spread"}
    results = json.loads(data.read_text())
    assert [result["policy"] for result in results] == ["binpack", "spread"]
    assert all(result["placed"] + len(result["waiting"]) == 5 for result in results)
    lines = ElementTree.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}polyline")
    widths = [line.get("stroke-width") for line in lines]
    assert (widths.count("4"), widths.count("2")) == (2, 2), "two policies in two panels, the second thinner"


def test_allocation_over_time_is_drawn_for_each_policy(tmp_path: Path) -> None:
    html = tmp_path / "page.html"
    reported = run("--policy", "binpack", "--policy", "spread", "--html", str(html)).splitlines()
    at = reported.index("allocated, % of all GPUs")
    assert [line.split()[0] for line in reported[at + 1 : at + 3]] == ["binpack", "spread"]
    assert all(line.endswith("%") for line in reported[at + 1 : at + 3])
    page = html.read_text()
    assert "5 pods on 2 nodes with 4 GPUs" in page and page.count("<svg") == 2
    assert page.count(">binpack<") >= 3, "in both charts and in the table"


def test_what_if_there_were_more_or_no_sharing() -> None:
    assert "5 pods on 2 nodes with 12 GPUs" in run("--remove-nodes", "plain", "--add-nodes", "1:T4:10")
    assert "1 pods wait" in run("--policy", "binpack", "--mode", "whole")
    assert "pods wait" not in run("--policy", "binpack", "--mode", "whole", "--add-nodes", "1:T4:1")


def cluster_of(folder: Path, *modes: str, **pods: dict[str, object]) -> str:
    gpus = [
        {"uuid": f"GPU-{mode}", "index": place, "model": "A100", "memoryMiB": 40960, "capacityMiB": 40960}
        | {"modes": mode.split(",")}
        for place, mode in enumerate(modes)
    ]
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8", "memory": "64Gi"}}}
    inventory = {"kind": "Inventory", "metadata": {"name": "n"}, "spec": {"node": "n", "gpus": gpus}}
    made = [
        {"kind": "Pod", "metadata": {"name": name, **meta}, "spec": {"containers": [{"name": "c", "resources": asked}]}}
        for name, about in pods.items()
        for meta, asked in [({"annotations": about["annotations"]}, {"limits": about["limits"]})]
    ]
    path = folder / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": [node, inventory, *made]}))
    return str(path)


MIG_DEVICE = {"annotations": {}, "limits": {"nvidia.com/mig-1g.5gb": "1"}}
BY_MIG = {
    "annotations": {"nvidia.com/vgpu-mode": "mig"},
    "limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"},
}
SHARE = {"annotations": {}, "limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}}


def test_mig_is_left_out_and_reported(tmp_path: Path) -> None:
    path = cluster_of(tmp_path, "mig", "mig,quota", "quota", device=MIG_DEVICE, by_mig=BY_MIG, share=SHARE)
    reported = run("--nodes", path, "--pods", path, "--policy", "binpack")
    assert "1 GPUs are left out, since their nodes partition them by MIG" in reported
    assert (
        "2 pods are left out, since they ask for MIG; replays know no MIG: default/device, default/by_mig" in reported
    )
    assert "1 pods on 1 nodes with 2 GPUs" in reported and "pods wait" not in reported
    assert "left out" not in run("--policy", "binpack")


def test_a_replay_of_nothing_but_mig_is_refused(tmp_path: Path) -> None:
    path = cluster_of(tmp_path, "mig", device=MIG_DEVICE)
    with pytest.raises(BadInput, match="has no pods that can be replayed: 1 GPUs are left out"):
        run("--nodes", path, "--pods", path)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--mode", "mig"), "--mode must be quota or whole, got 'mig'"),
        (("--policy", "best"), "there is no policy 'best'"),
        (("--remove-nodes", "*"), "no node is left"),
        (("--picture", "absent/x.svg"), "cannot write --picture absent/x.svg: No such file or directory"),
        (("--html", "absent/x.html"), "cannot write --html absent/x.html: No such file or directory"),
        (("--json", "absent/x.json"), "cannot write --json absent/x.json: No such file or directory"),
        (("--config", "absent.yaml"), "cannot read --config absent.yaml: No such file or directory"),
    ],
)
def test_what_makes_no_sense_is_refused(options: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        run(*options)


def test_a_configuration_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lamina.yaml"
    path.write_bytes(b"\xff")
    with pytest.raises(BadInput, match=r"--config .*lamina\.yaml is not UTF-8 text"):
        run("--config", str(path))


MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    spec:
      containers:
      - {name: main, resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 1000}}}
"""


def test_a_manifest_is_replayed_with_the_pods_that_its_workloads_make(tmp_path: Path) -> None:
    file = tmp_path / "web.yaml"
    file.write_text(MANIFEST)
    result = CliRunner().invoke(app, ["simulate", "--nodes", CLUSTER, "--pods", str(file)])
    assert "3 pods on 2 nodes with 4 GPUs" in result.output


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--pods", CLUSTER], "--nodes is missing: .* `lamina fits -f FILE`"),
        (["--nodes", CLUSTER], "--pods is missing: .* `lamina fits -f FILE`"),
    ],
)
def test_a_missing_file_is_named_with_the_command_that_needs_none(options: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["simulate", *options])
    assert isinstance(result.exception, BadInput)
    assert re.search(sentence, str(result.exception))
