"""Whether a pod has processes, by either version of cgroups and either of kubelet's ways to name them."""

from pathlib import Path

import pytest

from lamina.ports.cgroups import is_of_pod, pod_has_processes

UID = "0a1b2c3d-0000-4000-8000-00000000abcd"
SYSTEMD = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
DIRECT = f"kubepods/besteffort/pod{UID}"


def populated(pod: Path, populated: bool) -> None:
    (pod / "cgroup.events").write_text(f"populated {int(populated)}\nfrozen 0\n")


@pytest.mark.parametrize("path", [SYSTEMD, DIRECT, f"kubepods/pod{UID}"])
def test_a_pod_of_version_2_has_processes_while_its_cgroup_is_populated(tmp_path: Path, path: str) -> None:
    pod = tmp_path / path
    pod.mkdir(parents=True)
    populated(pod, True)
    assert pod_has_processes(UID, tmp_path)
    assert not pod_has_processes(UID.replace("abcd", "abce"), tmp_path), "another pod"
    populated(pod, False)
    assert not pod_has_processes(UID, tmp_path)


@pytest.mark.parametrize("path", [SYSTEMD, DIRECT])
def test_a_pod_of_version_1_has_processes_while_a_container_of_it_lists_one(tmp_path: Path, path: str) -> None:
    container = tmp_path / "memory" / path / "container"
    container.mkdir(parents=True)
    for folder in (container, container.parent):
        (folder / "cgroup.procs").write_text("")
    assert not pod_has_processes(UID, tmp_path)
    (container / "cgroup.procs").write_text("17\n")
    assert pod_has_processes(UID, tmp_path)


def test_without_cgroups_of_kubelet_there_are_no_processes(tmp_path: Path) -> None:
    assert not pod_has_processes(UID, tmp_path / "none")


def test_what_cannot_be_read_counts_as_populated(tmp_path: Path) -> None:
    (tmp_path / DIRECT / "cgroup.events").mkdir(parents=True)
    assert pod_has_processes(UID, tmp_path)


def test_paths_of_a_pod() -> None:
    assert is_of_pod(f"0::/{SYSTEMD}/cri-containerd-1.scope", UID)
    assert is_of_pod(f"0::/{DIRECT}/1", UID)
    assert not is_of_pod("0::/system.slice", UID) and not is_of_pod("", UID)
