"""S0.D to S4.D: each document from its first line to its last, in its own order, nothing edited but what it leaves to
its reader; what it prints is compared with what is printed, and each difference is on the page for its readers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.scenarios.conftest import StartLab
from tests.scenarios.documents import cce, nvidia, openshift, vgpu_scheduler, volcano
from tests.scenarios.documents.pages import listed
from tests.scenarios.documents.reader import Reader
from tests.scenarios.documents.steps import Adds, Step
from tests.seeds import seed


def follow(
    start_lab: StartLab,
    folder: Path,
    name: str,
    number: str,
    nodes: str,
    words: dict[str, str],
    script: Sequence[Step | Adds],
) -> set[str]:
    """The differences that show when a document is followed in a lab with these nodes."""
    text = seed(number)
    machines = folder / "machines.yaml"
    machines.write_text(nodes)
    lab = replace(start_lab(name, "--machines", str(machines)), node=yaml.safe_load(nodes)["nodes"][0]["name"])
    reader = Reader(lab, folder, words | {"{mps}": str(lab.root / name / "n" / "0" / "mps")})
    reader.follow(text, script)
    return reader.used


@pytest.mark.parametrize("compute", [False, True])
def test_s0_d_huaweis_document(start_lab: StartLab, tmp_path: Path, compute: bool) -> None:
    script = cce.script(compute=compute)
    found = follow(start_lab, tmp_path, f"cce-{int(compute)}", "000", cce.NODES, cce.WORDS, script)
    assert found == listed("cce.md")


def test_s1_d_volcanos_document(start_lab: StartLab, tmp_path: Path) -> None:
    found = follow(start_lab, tmp_path, "volcano", "001", volcano.NODES, volcano.WORDS, volcano.SCRIPT)
    assert found == listed("volcano.md")


def test_s2_d_sharing_your_gpu_in_the_cloud(start_lab: StartLab, tmp_path: Path) -> None:
    found = follow(start_lab, tmp_path, "openshift", "002", openshift.NODES, {}, openshift.SCRIPT)
    assert found == listed("sharing-in-the-cloud.md")


def test_s3_d_nvidias_document(start_lab: StartLab, tmp_path: Path) -> None:
    found = follow(start_lab, tmp_path, "nvidia", "003", nvidia.NODES, nvidia.WORDS, nvidia.SCRIPT)
    assert found == listed("nvidia.md")


def test_s4_d_4paradigms_document(start_lab: StartLab, tmp_path: Path) -> None:
    found = follow(
        start_lab, tmp_path, "paradigm", "004", vgpu_scheduler.NODES, vgpu_scheduler.WORDS, vgpu_scheduler.SCRIPT
    )
    assert found == listed("4paradigm.md")
