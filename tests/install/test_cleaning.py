"""What agents leave on nodes is found and removed, by hand and by a DaemonSet that is made from theirs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lamina.agent.cleanup import leftovers
from lamina.agent.mps.clients import ClientLimits
from lamina.agent.mps.lifecycle import DaemonJournal, JournaledDaemon
from lamina.install import values as install_values
from lamina.install.chart import objects
from lamina.install.cleaner import CLEANER, REQUIRED, cleaner
from lamina.install.names import AGENT
from lamina.ports.files import Files


@pytest.fixture
def node(tmp_path: Path) -> dict[str, Path]:
    folders = {"kubelet_dir": tmp_path / "kubelet", "cdi_dir": tmp_path / "cdi", "state_dir": tmp_path / "lamina"}
    (folders["kubelet_dir"] / "device-plugins").mkdir(parents=True)
    (folders["state_dir"] / "lib" / "0.1.0-abc").mkdir(parents=True)
    folders["cdi_dir"].mkdir()
    for path in (
        folders["cdi_dir"] / "lamina.dev-ticket_00.json",
        folders["cdi_dir"] / ".lamina.dev-ticket_00.json.new",
        folders["cdi_dir"] / "nvidia.com-gpu.json",
        folders["kubelet_dir"] / "device-plugins" / "lamina-gpu.sock",
        folders["kubelet_dir"] / "device-plugins" / "kubelet.sock",
        folders["state_dir"] / "lib" / "0.1.0-abc" / "libcuda.so",
    ):
        path.touch()
    return folders


def clean(node: dict[str, Path], *options: str) -> subprocess.CompletedProcess[str]:
    folders = [f"--{name.replace('_', '-')}={path}" for name, path in node.items()]
    command = [sys.executable, "-m", "lamina", "clean-node", *folders, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_all_of_ours_goes_and_nothing_of_others(node: dict[str, Path], tmp_path: Path) -> None:
    checked = clean(node, "--check")
    assert (checked.returncode, len(checked.stdout.splitlines())) == (1, 4)
    assert clean(node).returncode == 0
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"cdi/nvidia.com-gpu.json", "kubelet/device-plugins/kubelet.sock"}
    assert not node["state_dir"].exists()
    assert clean(node, "--check").returncode == 0
    assert clean(node).stdout == ""


def test_a_folder_that_others_use_as_well_stays_with_what_is_theirs(node: dict[str, Path]) -> None:
    state = node["state_dir"]
    for name in ("record.json", ".record.json.tmp", "mig.json", "lock", "theirs.json", "containers.db"):
        (state / name).touch()
    (state / "containers" / "storage").mkdir(parents=True)
    leftovers.remove_leftovers(leftovers.find_leftovers(**node))
    assert {path.name for path in state.iterdir()} == {"theirs.json", "containers.db", "containers", "lib"}
    assert leftovers.find_leftovers(**node) == []


def test_nothing_goes_while_an_agent_runs(node: dict[str, Path]) -> None:
    with Files().only_user(node["state_dir"]):
        refused = clean(node)
        assert (refused.returncode, f"an agent is using {node['state_dir']}" in refused.stderr) == (2, True)
        assert len(clean(node, "--check").stdout.splitlines()) == 4
    assert clean(node).returncode == 0
    assert clean(node, "--check").returncode == 0


def test_what_cannot_be_removed_is_reported_and_the_rest_is_removed(node: dict[str, Path], tmp_path: Path) -> None:
    kept = DaemonJournal(node["state_dir"] / "mps.json", Files())
    kept.put(
        JournaledDaemon(gpu="GPU-1", root=str(tmp_path / "mps"), limits=ClientLimits(memory_mib=1, threads_percent=10))
    )
    reported = clean(node)
    assert reported.returncode == 0 and "reset it with nvidia-smi -i GPU-1 -c DEFAULT" in reported.stderr
    assert not node["state_dir"].exists()


def test_a_node_without_any_of_the_folders_is_clean(tmp_path: Path) -> None:
    assert leftovers.find_leftovers(kubelet_dir=tmp_path / "a", cdi_dir=tmp_path / "b", state_dir=tmp_path / "c") == []


def daemon_set(values: Any) -> Any:
    """That of agents."""
    made = (each for each in objects(values, (1, 30, 0)) if each["kind"] == "DaemonSet")
    return next(each for each in made if each["metadata"]["name"] == AGENT)


@pytest.mark.parametrize("setting", ["agent.mig=true", "agent.stateDir=/data/lamina", "agent.nodeSelectorTerms=[]"])
def test_the_daemon_set_runs_where_agents_ran_and_sees_what_they_saw(setting: str) -> None:
    values = install_values.plain(install_values.read([], [setting, "agent.kubeletDir=/k"]))
    agents = daemon_set(values)
    made = cleaner(agents)
    theirs, spec = agents["spec"]["template"]["spec"], made["spec"]["template"]["spec"]
    for key in ("affinity", "nodeSelector", "tolerations"):
        assert spec.get(key) == theirs.get(key)
    (container,) = spec["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    state = values["agent"]["stateDir"]
    seen = {name: path for path, name in paths(spec, container).items()}
    named = dict(argument.lstrip("-").split("=") for argument in container["args"][2:])
    assert {visible_as(seen, named[option]) for option in ("cdi-dir", "state-dir")} == {"/var/run/cdi", state}
    assert visible_as(seen, named["kubelet-dir"] + "/device-plugins") == "/k/device-plugins"
    assert made["metadata"]["name"] == CLEANER


def test_where_nothing_is_mounted_it_has_no_rights() -> None:
    values = install_values.plain(install_values.read([], ["agent.filesMiB=0"]))
    agents = daemon_set(values)
    (container,) = cleaner(agents)["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "privileged" not in container["securityContext"]


def test_where_agents_shared_by_mps_it_can_give_compute_modes_back() -> None:
    given = ["agent.mps=true", "agent.runtimeClassName=nvidia"]
    values = install_values.plain(install_values.read([], given))
    agents = daemon_set(values)
    spec = cleaner(agents)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"} in container["env"]
    assert spec["runtimeClassName"] == "nvidia" and "/run/nvidia/mps" in paths(spec, container)


def test_nodes_that_had_an_agent_and_are_kept_out_by_now_are_named() -> None:
    values = install_values.plain(install_values.read([], []))
    agents = daemon_set(values)
    theirs, spec = (each["spec"]["template"]["spec"] for each in (agents, cleaner(agents, also=["a", "b"])))
    before, after = (each["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] for each in (theirs, spec))
    named = [term["matchFields"][0] for term in after[len(before) :]]
    assert after[: len(before)] == before
    assert named == [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]


def paths(spec: Any, container: Any) -> dict[str, str]:
    """The node's folders, and where the container has them."""
    volumes = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"]}
    return {volumes[mount["name"]]: mount["mountPath"] for mount in container["volumeMounts"]}


def visible_as(seen: dict[str, str], path: str) -> str:
    """The node's path for one of the container."""
    mounted = max((each for each in seen if path.startswith(each)), key=len)
    return seen[mounted] + path.removeprefix(mounted)
