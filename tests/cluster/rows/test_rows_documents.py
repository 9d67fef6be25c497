"""S0.D, S3.D and S4.D on real kubelets and a real scheduler: documents from their first line to their last.

The others begin with commands for a real GPU or for OpenShift, which the test cluster does not have.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.cluster.rows.replay import Replay
from tests.scenarios.documents import cce, nvidia, vgpu_scheduler
from tests.scenarios.documents.pages import listed
from tests.scenarios.documents.reader import Reader
from tests.scenarios.documents.steps import Adds, Step
from tests.seeds import seed


@pytest.fixture
def lab(replay: Replay) -> Iterator[Replay]:
    yield replay
    replay.delete_workloads()


def follow(
    lab: Replay, folder: Path, number: str, document: ModuleType, script: Sequence[Step | Adds], page: str
) -> None:
    machine = yaml.safe_load(document.NODES)
    (node,) = machine.pop("nodes")
    (gpus,) = node["gpus"]
    lab.become(gpus["model"], gpus.get("count", 1), **machine, gpus=node["gpus"])
    words = {word: name.replace("node-0", lab.node) for word, name in getattr(document, "WORDS", {}).items()}
    reader = Reader(lab, folder, words)
    reader.follow(seed(number), script)
    assert reader.used <= listed(page)


def test_s0_d_huaweis_document(lab: Replay, tmp_path: Path) -> None:
    follow(lab, tmp_path, "000", cce, cce.script(compute=True), "cce.md")


def test_s3_d_nvidias_document(lab: Replay, tmp_path: Path) -> None:
    follow(lab, tmp_path, "003", nvidia, nvidia.SCRIPT, "nvidia.md")


def test_s4_d_4paradigms_document(lab: Replay, tmp_path: Path) -> None:
    follow(lab, tmp_path, "004", vgpu_scheduler, vgpu_scheduler.SCRIPT, "4paradigm.md")
