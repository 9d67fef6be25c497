"""The life cycle of a lab for its user: up, down, two at once, killed and recovered, refused."""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina_lab.host import processes
from tests.scenarios.labs import lamina
from tests.signals import signals_received
from tests.waiting import wait_until

SMALL = ("--gpus-per-node", "1")


@pytest.fixture
def labs() -> Iterator[Path]:
    """A folder for labs of this test alone; nothing of them survives it."""
    root = Path(tempfile.mkdtemp(prefix="lam"))
    yield root
    for lab in root.iterdir():
        processes.end_all(lab, grace_s=0.0)
    shutil.rmtree(root)


def run(labs: Path, *arguments: str) -> tuple[int, str, str]:
    result = lamina(*arguments, environment=os.environ | {"LAMINA_LABS": str(labs), "KUBECONFIG": ""})
    return result.returncode, result.stdout, result.stderr


def supervisor(lab: Path) -> int:
    return int(json.loads((lab / "lab.json").read_text())["pid"])


def sockets(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if stat.S_ISSOCK(path.lstat().st_mode)]


def agents(lab: Path) -> list[int]:
    return [
        pid for pid in processes.marked(lab) if "\0agent\0" in Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    ]


def test_two_labs_run_side_by_side_and_leave_nothing(labs: Path) -> None:
    """And in one of them an agent that is killed is started again."""
    kubeconfig = labs / "first.kubeconfig"
    assert run(labs, "lab", "up", "--name", "a", *SMALL, "--kubeconfig", str(kubeconfig))[0] == 0
    (first,) = agents(labs / "a")
    os.kill(first, signal.SIGKILL)
    assert run(labs, "lab", "up", "--name", "b", "--gpus-per-node", "0")[0] == 0
    code, printed, _ = run(labs, "lab", "exec", "--name", "a", "node-0", "--", "nvidia-smi", "-L")
    assert (code, printed.count("GPU 0: Tesla V100")) == (0, 1), printed
    assert run(labs, "lab", "exec", "--name", "a", "node-0", "--", "sh", "-c", "exit 7")[0] == 7
    assert "node node-0 has no program frob" in run(labs, "lab", "exec", "--name", "a", "node-0", "frob")[2]
    assert (
        "lab a has no node node-9; its nodes are: node-0"
        in run(labs, "lab", "exec", "--name", "a", "node-9", "true")[2]
    )
    assert kubeconfig.stat().st_mode & 0o777 == 0o600
    assert kubeconfig.read_text() == (labs / "a" / "kubeconfig").read_text()
    assert kubeconfig.read_text() != (labs / "b" / "kubeconfig").read_text()
    _, listed, _ = run(labs, "lab", "status")
    assert [line.split()[:2] for line in listed.splitlines()[1:]] == [["a", "ready"], ["b", "ready"]]
    wait_until(lambda: bool(agents(labs / "a")) and agents(labs / "a") != [first], lambda: "no agent came back")
    code, _, sentence = run(labs, "lab", "up", "--name", "a")
    assert code == 2
    assert "is already running" in sentence
    assert run(labs, "lab", "down", "--name", "a")[0] == 0
    assert not (labs / "a").exists()
    assert list(processes.marked(labs / "a")) == []
    assert any(processes.marked(labs / "b")), "stopping one lab stopped the other"
    assert run(labs, "lab", "down", "--name", "b")[0] == 0
    assert list(processes.marked(labs / "b")) == []
    assert "There is no lab b" in run(labs, "lab", "down", "--name", "b")[1]


def test_a_lab_whose_supervisor_was_killed_leaves_nothing_and_up_recovers_it(labs: Path) -> None:
    """First with its guard alive, which leaves no process, socket or shared memory; then with the guard killed too."""
    assert run(labs, "lab", "up", *SMALL)[0] == 0
    lab = labs / "default"
    assert sockets(lab)
    os.kill(supervisor(lab), signal.SIGKILL)
    wait_until(lambda: not list(processes.marked(lab)), lambda: f"still there: {list(processes.marked(lab))}")
    assert sockets(lab) == []
    assert list(lab.rglob("machine")) == []
    assert "crashed" in run(labs, "lab", "status")[1]
    code, output, _ = run(labs, "lab", "up", *SMALL)
    assert code == 0
    assert "had crashed" in output
    for pid in [*processes.marked(lab)]:
        if "lamina_lab.cluster.guard" in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(pid, signal.SIGKILL)
    os.kill(supervisor(lab), signal.SIGKILL)
    wait_until(lambda: not processes.carries(lab, supervisor(lab)), lambda: "the supervisor lives on")
    code, output, sentence = run(labs, "lab", "up", *SMALL)
    assert code == 0, sentence
    assert "had crashed" in output
    assert run(labs, "lab", "down")[0] == 0
    assert not lab.exists()
    assert list(processes.marked(lab)) == []


def test_a_port_in_use_is_one_sentence_and_nothing_stays(labs: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, sentence = run(labs, "lab", "up", "--port", str(port))
    assert code == 2
    assert f"127.0.0.1:{port}" in sentence
    assert "in use" in sentence
    assert len(sentence.strip().splitlines()) == 1
    assert not (labs / "default").exists()
    assert list(processes.marked(labs / "default")) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--name", "No Lab"), "is not a valid lab name"),
        (("--nodes", "0"), "--nodes must be from 1 to 64, got 0"),
        (("--gpu", "RTX-9999"), "known models are"),
        (("--machines", "nowhere.yaml"), "cannot read nowhere.yaml"),
        (("--machines", "nowhere.yaml", "--gpu", "T4"), "leave out --nodes, --gpus-per-node and --gpu"),
        (("--config", "nowhere.yaml"), "cannot read the configuration nowhere.yaml"),
        (("--kubeconfig", "nowhere/at/all"), "cannot write --kubeconfig nowhere/at/all"),
        (("--kubeconfig", "/"), "cannot write --kubeconfig /"),
    ],
)
def test_invalid_input_is_refused_in_one_sentence_and_nothing_stays(
    labs: Path, options: tuple[str, ...], words: str
) -> None:
    code, _, sentence = run(labs, "lab", "up", *options)
    assert code == 2
    assert words in sentence
    assert len(sentence.strip().splitlines()) == 1
    assert list(labs.iterdir()) == []


def test_a_file_of_machines_as_the_configuration_is_refused_with_the_option_to_use(labs: Path) -> None:
    machines = labs / "machines.yaml"
    machines.write_text("dra: true\nnodes:\n- name: node-0\n  gpus: [{model: T4}]\n")
    code, _, sentence = run(labs, "lab", "up", "--config", str(machines))
    assert code == 2 and sentence.strip().endswith(f"not a configuration; use --machines {machines}")
    assert not (labs / "default").exists()


def test_an_unknown_configuration_key_is_named(labs: Path) -> None:
    config = labs / "lamina.yaml"
    config.write_text("hami:\n  deviceMemoryScalin: 3\n")
    code, _, sentence = run(labs, "lab", "up", "--config", str(config))
    assert code == 2
    assert "deviceMemoryScalin" in sentence
    assert "deviceMemoryScaling" in sentence
    assert not (labs / "default").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_start_that_is_interrupted_leaves_nothing(labs: Path, number: signal.Signals) -> None:
    with signals_received():
        starting = subprocess.Popen(
            [sys.executable, "-m", "lamina", "lab", "up", *SMALL],
            env=os.environ | {"LAMINA_LABS": str(labs)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    wait_until((labs / "default" / "lab.json").exists, lambda: "the lab did not begin")
    starting.send_signal(number)
    assert starting.wait(60) == 128 + number
    wait_until(lambda: not (labs / "default").exists(), lambda: "the lab stays")
    assert list(processes.marked(labs / "default")) == []


def test_a_missing_kubeconfig_is_reported_in_one_sentence(labs: Path) -> None:
    for verb in (("pods",), ("why", "x")):
        code, _, sentence = run(labs, *verb, "--kubeconfig", str(labs / "none"))
        assert code == 2
        assert str(labs / "none") in sentence
        assert len(sentence.strip().splitlines()) == 1
