"""Specs as the container runtime's library demands them, and files that it never reads by halves."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from lamina.agent.containers import cdi
from lamina.agent.containers.cdi import Hook, Mount
from lamina.ports.files import Files
from tests.cluster.components import container_runtime

NAME = "0123456789abcdef0123456789abcdef"


def test_the_names_in_answers_to_kubelet() -> None:
    assert cdi.device_name(NAME) == f"lamina.dev/ticket={NAME}"
    key, value = cdi.annotation(NAME)
    assert value == cdi.device_name(NAME)
    prefix, _, name = key.partition("/")
    assert prefix == "cdi.k8s.io"
    assert len(name) <= 63
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", name)


def test_a_spec() -> None:
    mounts = [Mount(Path("/host/limits"), "/run/lamina/limits"), Mount(Path("/host/usage"), "/run/lamina/usage", True)]
    document = json.loads(cdi.build_spec(NAME, {"A": "1", "B": ""}, mounts))
    assert document["cdiVersion"] == "0.5.0"
    assert document["kind"] == "lamina.dev/ticket"
    assert document["devices"] == [
        {
            "name": NAME,
            "containerEdits": {
                "env": ["A=1", "B="],
                "mounts": [
                    {
                        "hostPath": "/host/limits",
                        "containerPath": "/run/lamina/limits",
                        "options": ["ro", "nosuid", "nodev", "noexec", "rbind", "rprivate"],
                    },
                    {
                        "hostPath": "/host/usage",
                        "containerPath": "/run/lamina/usage",
                        "options": ["rw", "nosuid", "nodev", "noexec", "rbind", "rprivate"],
                    },
                ],
            },
        }
    ]
    assert "mounts" not in json.loads(cdi.build_spec(NAME, {"A": "1"}, []))["devices"][0]["containerEdits"]


def test_only_a_mount_that_says_so_may_be_executed() -> None:
    mounts = [Mount(Path("/host/lib"), "/lib", executable=True), Mount(Path("/host/usage"), "/run/usage")]
    edits = json.loads(cdi.build_spec(NAME, {}, mounts))["devices"][0]["containerEdits"]
    assert ["noexec" in mount["options"] for mount in edits["mounts"]] == [False, True]
    assert all({"nosuid", "nodev"} <= set(mount["options"]) for mount in edits["mounts"])


def test_a_spec_with_a_hook_for_the_moment_when_all_mounts_are_made() -> None:
    document = json.loads(cdi.build_spec(NAME, {}, [], [Hook(Path("/host/cover"), ("/host",))]))
    edits = document["devices"][0]["containerEdits"]
    assert edits["hooks"] == [{"hookName": "createContainer", "path": "/host/cover", "args": ["cover", "/host"]}]
    assert "hooks" not in json.loads(cdi.build_spec(NAME, {"A": "1"}, []))["devices"][0]["containerEdits"]


def test_file_names_lead_back_to_names() -> None:
    assert cdi.name_of_file(cdi.file_name(NAME)) == NAME
    assert cdi.is_ours(cdi.file_name(NAME))
    for other in ("nvidia.yaml", "lamina.dev-ticket_short.json", f".{cdi.file_name(NAME)}.tmp", f"{NAME}.json"):
        assert cdi.name_of_file(other) is None
    assert not cdi.is_ours("nvidia.yaml")


def test_the_runtime_sees_whole_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the file is written, nothing in the folder has a name that the runtime reads; then it is renamed there."""
    seen: list[set[str]] = []
    rename = Path.rename

    def watching(self: Path, target: Path) -> Path:
        seen.append({path.suffix for path in tmp_path.iterdir()})
        assert self.parent == target.parent == tmp_path
        assert json.loads(self.read_text())
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", watching)
    Files().write(tmp_path / cdi.file_name(NAME), cdi.build_spec(NAME, {"A": "1"}, []))
    assert seen == [{".tmp"}]
    assert [path.name for path in tmp_path.iterdir()] == [cdi.file_name(NAME)]


@pytest.mark.parametrize(
    ("visible", "devices"),
    [("GPU-1", ["GPU-1"]), ("GPU-1,0:1", ["GPU-1", "0:1"]), ("", []), (cdi.VOLUMES, [])],
)
def test_mounts_name_the_same_devices_as_the_variable(visible: str, devices: list[str]) -> None:
    assert [each.container for each in cdi.device_mounts(visible)] == [f"{cdi.VOLUMES}/{each}" for each in devices]


@pytest.mark.parametrize("refused", [True, False])
def test_a_share_arrives_whichever_way_the_runtime_of_the_node_takes(refused: bool) -> None:
    """The stand-in of NVIDIA's runtime is the one of the tests on a real cluster."""
    spec = cdi.build_spec("f00", {cdi.VISIBLE: "GPU-1,GPU-2"}, cdi.device_mounts("GPU-1,GPU-2"))
    (device,) = msgspec.json.decode(spec)["devices"]
    edits = device["containerEdits"]
    mounts = [{"source": each["hostPath"], "destination": each["containerPath"]} for each in edits["mounts"]]
    settings = {container_runtime.BY_VARIABLE: not refused, container_runtime.BY_MOUNTS: refused}
    container = {"process": {"env": ["NVIDIA_VISIBLE_DEVICES=all", *edits["env"]]}, "mounts": mounts}
    assert container_runtime.visible(container, settings) == "GPU-1,GPU-2"
    assert container_runtime.visible({"process": {"env": ["NVIDIA_VISIBLE_DEVICES=all"]}}, settings) == (
        "" if refused else "all"
    )
