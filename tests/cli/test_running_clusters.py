"""Without a kubeconfig, a command names the labs that run."""

from pathlib import Path

import msgspec
import pytest

from lamina.cli.main import main
from lamina_lab.cluster import survey
from lamina_lab.cluster.survey import LabSummary

READY = LabSummary(
    name="default", state="ready", url="https://a", nodes=1, gpus=2, kubeconfig="/labs/default/kubeconfig"
)


def sentence(
    labs: list[LabSummary], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> str:
    monkeypatch.setattr(survey, "survey", lambda: labs)
    monkeypatch.setattr("sys.argv", ["lamina", "pods", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a kubeconfig."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return tmp_path


def test_the_labs_that_run_are_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = msgspec.structs.replace(READY, name="old", state="crashed", kubeconfig="/labs/old/kubeconfig")
    printed = sentence([READY, stopped], monkeypatch, capsys)
    assert printed.startswith("lamina: ") and len(printed.splitlines()) == 1
    assert f"{home}/.kube/config cannot be used: not found" in printed
    assert printed.endswith("; lab default is running: export KUBECONFIG=/labs/default/kubeconfig\n")
    assert "/labs/old" not in printed


def test_a_file_that_is_gone_is_no_different(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(home / "gone"))
    assert "gone cannot be used: not found" in sentence([], monkeypatch, capsys)
    assert "export KUBECONFIG" in sentence([READY], monkeypatch, capsys)


def test_another_mistake_in_a_kubeconfig_names_no_lab(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "bad").write_text("{")
    assert "export KUBECONFIG" not in sentence([READY], monkeypatch, capsys, "--kubeconfig", str(home / "bad"))
