"""Small decisions: probes, logs, programs, recovery, options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.errors import BadInput
from lamina_lab.kubelet.__main__ import settings
from lamina_lab.kubelet.containers.entrypoints import PAUSE, program
from lamina_lab.kubelet.containers.shim import MAX_LINE, ROTATE_BYTES, Log, find_program
from lamina_lab.kubelet.model.records import Terminated, Waiting
from lamina_lab.kubelet.pods import recovery
from lamina_lab.kubelet.pods.probes import Probe, Tally, port_number
from lamina_lab.kubelet.pods.worker import pod_ip
from lamina_lab.kubelet.serving import logs


def test_probe_thresholds() -> None:
    tally = Tally(Probe.of({"successThreshold": 2, "failureThreshold": 3}))
    answers = [True, True, False, False, True, False, False, False, False]
    assert [tally.note(answer) for answer in answers] == [None, True, None, None, None, None, None, False, False]


def test_probe_defaults() -> None:
    probe = Probe.of({"exec": {"command": ["true"]}})
    assert (probe.initial_delay_s, probe.period_s, probe.timeout_s) == (0, 10, 1)
    assert (probe.success_threshold, probe.failure_threshold) == (1, 3)


def test_probe_ports() -> None:
    container = {"ports": [{"name": "web", "containerPort": 80}]}
    assert [port_number(port, container) for port in (8080, "web", "81")] == [8080, 80, 81]
    with pytest.raises(ValueError, match="other"):
        port_number("other", container)


def entry(text: str, tag: str = "F", second: int = 0) -> bytes:
    return f"2026-01-01T00:00:{second:02d}.000000000Z stdout {tag} {text}".encode()


def test_log_entries_as_kubectl_shows_them() -> None:
    plain = logs.LogRequest()
    assert logs.render(entry("a b"), plain) == b"a b\n"
    assert logs.render(entry("part", "P"), plain) == b"part"
    assert logs.render(entry("a"), logs.LogRequest(timestamps=True)) == b"2026-01-01T00:00:00.000000000Z a\n"
    since = logs.LogRequest(since="2026-01-01T00:00:05.000000Z")
    assert [logs.render(entry("a", second=second), since) for second in (4, 6)] == [b"", b"a\n"]
    assert logs.render(b"torn", plain) == b""


@pytest.mark.parametrize(("count", "expected"), [(None, 5), (0, 0), (1, 1), (2, 4), (3, 5), (99, 5)])
def test_last_lines_count_long_lines_once(count: int | None, expected: int) -> None:
    entries = [entry("1"), entry("2a", "P"), entry("2b", "P"), entry("2c"), entry("3")]
    assert logs.last_lines(entries, count) == entries[5 - expected :]


async def test_a_log_is_rotated_and_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    log = Log(str(path))
    log.feed("stdout", b"x" * (2 * MAX_LINE + 5) + b"\nrest")
    log.feed("stderr", b"other\n")
    filler = b"y" * 1000 + b"\n"
    for _ in range(ROTATE_BYTES // 1000):
        log.feed("stdout", filler)
    log.close()
    assert path.with_name("0.log.1").stat().st_size > ROTATE_BYTES
    chunks = [chunk async for chunk in logs.read(path, logs.LogRequest(), lambda: False)]
    shown = b"".join(chunks)
    assert shown.startswith(b"x" * (2 * MAX_LINE + 5) + b"\nother\nresty")
    assert shown.count(b"\n") == ROTATE_BYTES // 1000 + 2


def test_programs(tmp_path: Path) -> None:
    tool = tmp_path / "dcgm"
    tool.write_text("")
    tool.chmod(0o755)
    path = str(tmp_path)

    def chosen(command: list[str], args: list[str], image: str = "cuda") -> tuple[list[str], bool]:
        return program(image, command, args, path, tmp_path)

    assert chosen(["dcgm"], ["-d"]) == (["dcgm", "-d"], False)
    assert chosen(["/usr/bin/dcgm"], []) == ([str(tool)], False)
    assert chosen(["/usr/bin/none"], []) == (["/usr/bin/none"], False)
    script = "while true; do /usr/bin/dcgm -t 1; ./usr/bin/dcgm; x=/usr/bin/dcgm/more; /bin/sh; done"
    changed = f"while true; do {tool} -t 1; ./usr/bin/dcgm; x=/usr/bin/dcgm/more; /bin/sh; done"
    assert chosen(["/bin/sh", "-c"], [script]) == (["/bin/sh", "-c", changed], False)
    assert chosen([], ["dcgm", "-d"]) == (["dcgm", "-d"], False)
    assert chosen([], ["--flag"]) == (list(PAUSE), True)
    assert chosen([], []) == (list(PAUSE), True)
    known = "nvidia/samples:dcgmproftester-2.0.10-cuda11.0-ubuntu18.04"
    assert chosen([], ["-t 1004"], known) == ([str(tmp_path / "dcgmproftester11"), "-t 1004"], False)
    assert chosen([], [], known) == (list(PAUSE), True)
    assert chosen(["sleep"], ["9"], known) == (["sleep", "9"], False)


def reported(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    status = {"startTime": "2026-01-01T00:00:00Z", "containerStatuses": [{"name": "c", "state": state, **more}]}
    return {"spec": {"containers": [{"name": "c"}, {"name": "new"}]}, "status": status}


def test_what_ran_under_an_earlier_kubelet_has_ended() -> None:
    ran = reported({"running": {"startedAt": "1970-01-01T00:00:07Z"}}, restartCount=3, containerID="lamina://abc")
    container, new = recovery.restored(ran, 100.0)
    assert (container.restarts, container.container_id) == (3, "abc")
    assert isinstance(container.state, Terminated)
    assert (container.state.exit_code, container.state.reason) == (137, recovery.LOST)
    assert (container.state.started_at, container.state.finished_at) == (7.0, 100.0)
    assert new.state == Waiting("ContainerCreating")


def test_what_had_ended_stays_as_it_was() -> None:
    end = {"exitCode": 2, "reason": "Error", "finishedAt": "1970-01-01T00:00:09Z"}
    container, _ = recovery.restored(reported({"waiting": {"reason": "X"}}, lastState={"terminated": end}), 100.0)
    assert container.last is not None
    assert (container.state, container.last.exit_code, container.last.finished_at) == (Waiting("X"), 2, 9.0)
    assert recovery.was_admitted(reported({}))
    assert not recovery.was_admitted({"spec": {}})


def test_pod_addresses_are_loopback_and_steady() -> None:
    addresses = {pod_ip(f"{n:08x}-0000-0000-0000-000000000000") for n in range(500)}
    assert len(addresses) == 500
    for address in addresses:
        parts = [int(part) for part in address.split(".")]
        assert parts[0] == 127
        assert parts[1] >= 1
        assert all(0 <= part <= 254 for part in parts)


OPTIONS = (
    *("--node", "n", "--lab-id", "/lab", "--kubeconfig", "/k", "--kubelet-dir", "/d", "--programs", "/p"),
    *("--root-dir", "/r", "--socket", "/s", "--cdi-dir", "/c1", "--cdi-dir", "/c2"),
)


def test_options() -> None:
    given = settings([*OPTIONS, "--label", "gpu=on", "--gpu-env", "A=1", "--container-env", "B=2", "--cpus", "3"])
    assert given.cdi_dirs == (Path("/c1"), Path("/c2"))
    assert (given.labels, given.gpu_env, given.container_env, given.cpus) == ({"gpu": "on"}, {"A": "1"}, {"B": "2"}, 3)
    assert given.marker == {"LAMINA_LAB": "/lab", "LAMINA_NODE": "n"}


def test_bad_options_are_refused_in_one_sentence() -> None:
    with pytest.raises(BadInput, match=r"--label 'gpu': must be KEY=VALUE"):
        settings([*OPTIONS, "--label", "gpu"])
    with pytest.raises(BadInput, match="too long for a socket, which allows at most 107 bytes"):
        settings([*OPTIONS, "--socket", "/" + "x" * 107])


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A directory that an ordinary user cannot search, with a program in it that root cannot run either."""
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "tool").write_text("#!/bin/sh\n")
    folder.chmod(0)
    yield folder
    folder.chmod(0o755)


def test_a_program_is_found_behind_a_directory_that_cannot_be_searched(tmp_path: Path, closed: Path) -> None:
    (tmp_path / "open").mkdir()
    tool = tmp_path / "open" / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    (tmp_path / "folder" / "tool").mkdir(parents=True)
    folders = (closed, tmp_path / "missing", tool, tmp_path / "folder", tmp_path / "open")
    assert find_program("tool", {"PATH": ":".join(map(str, folders))}) == str(tool)
    assert find_program("/bin/tool", {"PATH": str(tool.parent)}) == "/bin/tool"


def test_a_program_in_a_directory_that_cannot_be_searched_is_not_found(closed: Path) -> None:
    with pytest.raises(FileNotFoundError):
        find_program("tool", {"PATH": f"{closed}:/usr/bin:/bin"})
