"""CDI names become edits of a container, and mounts become variables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lamina_lab.kubelet.containers.mounts import environment, on_host
from lamina_lab.kubelet.device_manager.cdi import (
    CdiFolders,
    CdiMount,
    Edits,
    UnresolvableDevices,
    names_of,
    parse,
    resolve,
)


def document(name: str = "one", env: tuple[str, ...] = (), common: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "cdiVersion": "0.6.0",
        "kind": "lamina.dev/ticket",
        "containerEdits": {"env": list(common)},
        "devices": [{"name": name, "containerEdits": {"env": list(env)}}],
    }


def test_device_edits_follow_the_files_common_ones() -> None:
    spec = parse(document(env=("A=device", "B=x=y"), common=("A=common", "C=")))
    assert resolve(["lamina.dev/ticket=one"], [[spec]]).env == {"A": "device", "B": "x=y", "C": ""}


def test_mounts_are_collected() -> None:
    raw = document()
    raw["devices"][0]["containerEdits"]["mounts"] = [{"hostPath": "/h", "containerPath": "/c", "options": ["ro"]}]
    assert resolve(["lamina.dev/ticket=one"], [[parse(raw)]]) == Edits({}, (CdiMount("/h", "/c"),))


def test_all_unknown_names_are_reported() -> None:
    with pytest.raises(UnresolvableDevices, match=r"unresolvable CDI devices v/c=x, v/c=y"):
        resolve(["v/c=x", "lamina.dev/ticket=one", "v/c=y"], [[parse(document())]])


def test_a_later_folder_wins_and_a_duplicate_name_is_invalid() -> None:
    low, high = parse(document(env=("A=low",))), parse(document(env=("A=high",)))
    assert resolve(["lamina.dev/ticket=one"], [[low], [high]]).env == {"A": "high"}
    with pytest.raises(UnresolvableDevices):
        resolve(["lamina.dev/ticket=one"], [[low, high]])


@pytest.mark.parametrize("bad", [None, [], {}, {"kind": 1}])
def test_invalid_specifications(bad: object) -> None:
    with pytest.raises(ValueError, match="not a CDI specification"):
        parse(bad)


def test_names_come_from_the_field_and_from_annotations() -> None:
    annotations = {"cdi.k8s.io/lamina_1": "v/c=b,v/c=a", "other": "v/c=z"}
    assert names_of(["v/c=a"], annotations) == ["v/c=a", "v/c=b"]


def test_folders_are_read_as_they_change(tmp_path: Path) -> None:
    folders = CdiFolders((tmp_path / "none", tmp_path))
    name = ["lamina.dev/ticket=one"]
    for draft in ("a.tmp", "broken.json"):
        (tmp_path / draft).write_text("{")
    with pytest.raises(UnresolvableDevices):
        folders.resolve(name)
    (tmp_path / "a.json").write_text(json.dumps(document(env=("A=1",))))
    assert folders.resolve(name).env == {"A": "1"}
    (tmp_path / "b.tmp").write_text(json.dumps(document(env=("A=2",))))
    (tmp_path / "b.tmp").rename(tmp_path / "a.json")
    assert folders.resolve(name).env == {"A": "2"}
    (tmp_path / "a.json").unlink()
    with pytest.raises(UnresolvableDevices):
        folders.resolve(name)


def test_the_products_mounts_become_variables() -> None:
    mounts = [
        CdiMount("/state/pod_c/limits", "/run/lamina/limits"),
        CdiMount("/state/pod_c/usage", "/run/lamina/usage"),
        CdiMount("/native/simgpu", "/run/lamina-driver"),
        CdiMount("/native/facade/libcuda.so.1", "/usr/local/lamina/1/libcuda.so.1"),
        CdiMount("/native/facade/libnvidia-ml.so.1", "/usr/local/lamina/1/libnvidia-ml.so.1"),
        CdiMount("/state/ld.so.preload", "/etc/ld.so.preload"),
        CdiMount("/elsewhere", "/data"),
    ]
    preload = "/usr/local/lamina/1/libcuda.so.1\n/usr/local/lamina/1/libnvidia-ml.so.1\n"
    assert environment(mounts, read=lambda path: {"/state/ld.so.preload": preload}[path]) == {
        "LAMINA_DIR": "/state/pod_c",
        "LAMINA_DRIVER": "/native/simgpu",
        "LD_PRELOAD": "/native/facade/libcuda.so.1:/native/facade/libnvidia-ml.so.1",
    }
    assert environment([]) == {}


def test_paths_below_a_mount_are_found_by_the_deepest_one() -> None:
    mounts = [CdiMount("/a", "/usr"), CdiMount("/b", "/usr/local/")]
    assert on_host("/usr/lib/x", mounts) == "/a/lib/x"
    assert on_host("/usr/local/x", mounts) == "/b/x"
    assert on_host("/usrlocal", mounts) == "/usrlocal"


def test_gpus_that_are_named_by_mounts_are_those_that_the_container_sees() -> None:
    folder = "/var/run/nvidia-container-devices"
    mounts = [CdiMount("/dev/null", f"{folder}/{name}") for name in ("GPU-a", "1", "imex/0")]
    assert environment(mounts) == {"NVIDIA_VISIBLE_DEVICES": "GPU-a,1"}
