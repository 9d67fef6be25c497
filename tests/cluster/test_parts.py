"""Parts of the cluster that need neither root nor a cluster: the cache, images, the stand-in of NVIDIA's runtime."""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.components import cache, commands, container_runtime, fitness, gpus, guard, images, kubelet
from tests.cluster.components.certificates import Authority


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_result_is_made_once() -> None:
    made: list[str] = []

    def make(work: Path, result: Path) -> None:
        made.append("made")
        (result / "file").write_text("content")

    assert cache.kept("thing", make) == cache.kept("thing", make)
    assert made == ["made"]
    assert (cache.kept("thing", make) / "file").read_text() == "content"


def test_an_interrupted_attempt_leaves_only_its_work_folder() -> None:
    def interrupted(work: Path, result: Path) -> None:
        (work / "step").touch()
        (result / "half").touch()
        raise KeyboardInterrupt

    def go_on(work: Path, result: Path) -> None:
        assert (work / "step").exists()
        (result / "whole").touch()

    with pytest.raises(KeyboardInterrupt):
        cache.kept("thing", interrupted)
    assert not (cache.folder() / "thing").exists()
    assert [path.name for path in cache.kept("thing", go_on).iterdir()] == ["whole"]
    assert not (cache.folder() / "thing.work").exists()


def test_a_failed_program_is_reported_in_one_sentence() -> None:
    with pytest.raises(commands.Unavailable) as reported:
        commands.run(["env", "--", "sh", "-c", "echo what went wrong >&2; exit 3"])
    assert str(reported.value) == "`sh -c echo what went wrong >&2; exit 3` ended with 3: what went wrong"
    with pytest.raises(commands.Unavailable, match="nowhere"):
        commands.run(["/nowhere/program"])


def test_an_image_is_what_its_index_says(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin/tool").write_text("tool")
    (root / "link").symlink_to("bin/tool")
    archive = images.write(tmp_path / "image.tar", "stage.local/tool:1", root, entrypoint=["/bin/tool"], env={"A": "b"})
    again = images.write(tmp_path / "again.tar", "stage.local/tool:1", root, entrypoint=["/bin/tool"], env={"A": "b"})
    with tarfile.open(archive) as opened:

        def blob(described: dict[str, Any]) -> bytes:
            kind, _, digest = described["digest"].partition(":")
            content = opened.extractfile(f"blobs/{kind}/{digest}")
            assert content is not None
            data = content.read()
            assert hashlib.sha256(data).hexdigest() == digest
            assert len(data) == described["size"]
            return data

        index = json.load(opened.extractfile("index.json"))  # type: ignore[arg-type]
        (named,) = index["manifests"]
        manifest = json.loads(blob(named))
        config = json.loads(blob(manifest["config"]))
        (layer,) = manifest["layers"]
        blob(layer)
    assert named["annotations"]["io.containerd.image.name"] == "stage.local/tool:1"
    assert config["config"] == {"Entrypoint": ["/bin/tool"], "Env": ["A=b"]}
    assert config["rootfs"]["diff_ids"] == [layer["digest"]]
    assert archive.read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    ("user", "path", "watches", "sentence"),
    [
        (1000, None, 1, "needs root, for namespaces and control groups"),
        (
            0,
            "/nowhere",
            1,
            "needs apt-get, buildah, cc, dpkg-deb, ip, lsns, mount, nsenter, patch, tar, unshare on PATH",
        ),
        (0, None, 100_000, "needs 100000 instances of inotify and [0-9]+ are free here: raise fs.inotify"),
    ],
)
def test_a_machine_that_cannot_run_a_test_cluster_gets_the_reason(
    user: int, path: str | None, watches: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if user == 0 and path is None and os.geteuid() != 0:
        pytest.skip("needs root")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setenv("PATH", path or os.environ["PATH"])
    monkeypatch.setattr(fitness, "WATCHES", watches)
    with pytest.raises(commands.Unavailable, match=sentence):
        fitness.check()


GPU = "NVIDIA_VISIBLE_DEVICES=GPU-1"


@pytest.mark.parametrize(
    ("env", "edited"),
    [
        ([GPU], True),
        (["NVIDIA_VISIBLE_DEVICES=all"], True),
        (["NVIDIA_VISIBLE_DEVICES=void", GPU], True),
        ([GPU, "NVIDIA_VISIBLE_DEVICES=void"], False),
        (["NVIDIA_VISIBLE_DEVICES="], False),
        (["NVIDIA_VISIBLE_DEVICES=void"], False),
        (["PATH=/bin"], False),
        ([], False),
    ],
)
def test_the_driver_comes_into_containers_that_are_to_see_gpus(tmp_path: Path, env: list[str], edited: bool) -> None:
    ours = {"destination": "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "source": "/ours"}
    spec = {"process": {"env": env}, "mounts": [ours]}
    (tmp_path / "config.json").write_text(json.dumps(spec))
    (tmp_path / "settings.json").write_text(json.dumps({"machine": "/gpu", "driver": "/driver"}))
    program = [sys.executable, "-I", "-S", str(gpus.RUNTIME), str(tmp_path / "settings.json")]
    subprocess.run([*program, "--root", "/r", "create", "--bundle", str(tmp_path), "id"], check=True)
    mounts = json.loads((tmp_path / "config.json").read_text())["mounts"]
    assert mounts[0] == ours
    added = {each["destination"] for each in mounts[1:]}
    assert (ours["destination"] in added and "/run/simgpu" in added) if edited else not added


VARIABLE_REFUSED = {container_runtime.BY_VARIABLE: False}
MOUNTS_TAKEN = {container_runtime.BY_MOUNTS: True}
NAMED = {"source": "/dev/null", "destination": "/var/run/nvidia-container-devices/GPU-1"}


@pytest.mark.parametrize(
    ("settings", "spec", "devices"),
    [
        ({}, {"mounts": [NAMED]}, ""),
        (MOUNTS_TAKEN, {"mounts": [NAMED]}, "GPU-1"),
        (MOUNTS_TAKEN, {"mounts": [NAMED | {"source": "/elsewhere"}]}, ""),
        (MOUNTS_TAKEN, {"mounts": [], "env": [GPU]}, "GPU-1"),
        (VARIABLE_REFUSED, {"mounts": [NAMED], "env": [GPU]}, ""),
        (VARIABLE_REFUSED | MOUNTS_TAKEN, {"mounts": [NAMED], "env": ["NVIDIA_VISIBLE_DEVICES=all"]}, "GPU-1"),
        (VARIABLE_REFUSED, {"env": [GPU], "capabilities": {"bounding": ["CAP_SYS_ADMIN"]}}, "GPU-1"),
    ],
)
def test_a_node_decides_what_its_runtime_takes(settings: dict[str, bool], spec: dict[str, Any], devices: str) -> None:
    process = {key: spec[key] for key in ("env", "capabilities") if key in spec}
    assert container_runtime.visible({"process": process, "mounts": spec.get("mounts", [])}, settings) == devices


@pytest.mark.parametrize(
    ("arguments", "bundle"),
    [
        (["create", "--bundle", "/b", "id"], "/b"),
        (["create", "-b", "/b", "id"], "/b"),
        (["create", "--bundle=/b", "id"], "/b"),
    ],
)
def test_the_bundle_is_found_as_runc_finds_it(arguments: list[str], bundle: str) -> None:
    assert container_runtime.bundle(arguments) == Path(bundle)


@pytest.mark.parametrize("keep", [True, False])
def test_the_guard_takes_the_folder_when_its_pipe_closes(tmp_path: Path, keep: bool) -> None:
    folder = tmp_path / "stage"
    folder.mkdir()
    guard.sweep(folder, "lamina-stage-that-never-was", keep=keep)
    assert folder.exists() == keep


@pytest.mark.parametrize(
    ("version", "flags", "keys"),
    [
        ((1, 20), {"--container-runtime=remote"}, set()),
        ((1, 27), set(), {"containerRuntimeEndpoint"}),
        ((1, 36), set(), {"containerRuntimeEndpoint", "failCgroupV1"}),
    ],
)
def test_kubelet_gets_the_endpoint_of_containerd_as_its_version_expects(
    tmp_path: Path, version: tuple[int, int], flags: set[str], keys: set[str]
) -> None:
    authority = Authority(tmp_path / "certificates", "https://10.231.0.1:6443")
    words = [str(word) for word in kubelet.arguments(tmp_path, "node1", 1, "stage/node1", authority, version)]
    document = yaml.safe_load((tmp_path / "kubelet.yaml").read_text())
    assert flags <= {*words}
    assert {"containerRuntimeEndpoint", "failCgroupV1"} & {*document} == keys
    assert any(word.startswith("--container-runtime-endpoint=") for word in words) == (version < (1, 27))
