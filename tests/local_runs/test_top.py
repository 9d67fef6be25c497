"""`lamina top` without Kubernetes: the runs and GPUs of this machine on the screen of a cluster."""

import platform
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lamina.cli.main import app
from lamina.cli.screen.source import TopMachine
from lamina.errors import NoKubeconfig, Outside
from lamina.ports.clock import FakeClock
from tests.worlds.runs import holding, private_folder, running

RUN = ("--memory", "1000Mi", "--simulate", "T4")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return private_folder(tmp_path, monkeypatch)


@pytest.mark.parametrize("options", [(), ("--local",)])
def test_without_a_cluster_it_shows_runs(options: tuple[str, ...]) -> None:
    with running(*RUN, command=holding(100)):
        ended = CliRunner().invoke(app, ["top", "--once", *options])
    assert ended.exit_code == 0, ended.output
    assert f"This is machine {platform.node()} without Kubernetes" in ended.output
    assert "1000" in ended.output and "T4" in ended.output


def test_a_machine_without_a_gpu_and_a_cluster_is_one_sentence() -> None:
    ended = CliRunner().invoke(app, ["top", "--once"])
    assert isinstance(ended.exception, NoKubeconfig)
    assert "kubeconfig" in str(ended.exception) and "no NVIDIA driver" in str(ended.exception)


async def test_a_reading_has_the_rows_of_ps_and_gpus() -> None:
    machine = TopMachine(FakeClock())
    with running(*RUN, command=holding(100)) as process:
        reading = await machine.read()
        (share,) = reading.shares
        assert (share.share.memory_mib, [gpu.model for gpu in reading.gpus]) == (1000, ["Tesla T4"])
        assert reading.waiting == () and not reading.silent
        (line,) = await machine.why(share.namespace, share.pod)
        assert "lamina ps" in line and process.poll() is None
    with pytest.raises(Outside, match="no NVIDIA driver"):
        await machine.read()
