"""What the containers of an installation may do: the least that their mode needs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.configuration.nvidia.rules import DEFAULT_MPS_ROOT
from lamina.errors import BadInput
from lamina.install import values
from lamina.install.chart import objects
from lamina.install.cleaner import cleaner
from lamina.install.names import AGENT, MPS
from lamina.ports.kube import Object
from lamina.ports.mps.service_client import SOCKET

OF_AGENT = {
    (): ["CHOWN"],
    ("agent.mig=true",): ["CHOWN", "SYS_ADMIN"],
    ("agent.mps=true",): ["CHOWN", "SYS_ADMIN"],
    ("agent.mig=true", "agent.mps=true"): ["CHOWN", "SYS_ADMIN"],
    ("dashboard.enabled=true",): ["CHOWN"],
    ("agent.filesMiB=0",): ["CHOWN"],
    ("agent.filesMiB=0", "agent.mps=true"): ["CHOWN", "SYS_ADMIN"],
}


def privileged(settings: tuple[str, ...]) -> set[str]:
    """What mounts and unmounts something on the node: the shared memory of MPS clients, and the tmpfs for the files of
    containers. Nothing else."""
    mps = {"mps", "cleaner"} if "agent.mps=true" in settings else set()
    return mps | (set() if "agent.filesMiB=0" in settings else {"mount-files", "cleaner"})


def pods(settings: tuple[str, ...]) -> dict[str, Object]:
    """The pods' specifications by their workload, also of the one that an uninstallation makes."""
    made = objects(values.plain(values.read([], settings)), (1, 36, 0))
    workloads = [each for each in made if "template" in each.get("spec", {})]
    workloads += [cleaner(each) for each in workloads if each["metadata"]["name"] == AGENT]
    return {each["metadata"]["name"].removeprefix("lamina-"): each["spec"]["template"]["spec"] for each in workloads}


def containers(settings: tuple[str, ...]) -> Iterator[tuple[str, Object]]:
    """The security contexts of all containers, with the names of their workloads."""
    for name, pod in pods(settings).items():
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            yield "mount-files" if container["name"] == "mount-files" else name, container["securityContext"]


@pytest.mark.parametrize("settings", OF_AGENT)
def test_no_container_writes_its_image_or_calls_what_the_runtime_filters(settings: tuple[str, ...]) -> None:
    names = [name for name, _ in containers(settings)]
    with_mps = ["mps"] if "agent.mps=true" in settings else []
    with_dashboard = ["dashboard"] if "dashboard.enabled=true" in settings else []
    mounting = [] if "agent.filesMiB=0" in settings else ["mount-files"]
    own = ["controller", "controller"]  # and admission
    expected = [*own, "scheduler", "scheduler", *mounting, "agent", *with_mps, *with_dashboard, "cleaner"]
    assert sorted(names) == sorted(expected)
    for name, context in containers(settings):
        assert context["readOnlyRootFilesystem"] is True, name
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert context.get("privileged", False) is (name in privileged(settings)), name


@pytest.mark.parametrize("settings", OF_AGENT)
def test_capabilities_are_those_that_the_mode_needs(settings: tuple[str, ...]) -> None:
    allowed = {"agent": OF_AGENT[settings], **{name: ["SYS_ADMIN"] for name in privileged(settings)}}
    for name, context in containers(settings):
        assert context["capabilities"]["drop"] == ["ALL"], name
        added = context["capabilities"].get("add", [])
        assert added == allowed.get(name, []), name
        # Kubernetes requires it with SYS_ADMIN.
        assert context["allowPrivilegeEscalation"] is ("SYS_ADMIN" in added), name


@pytest.mark.parametrize("settings", OF_AGENT)
def test_only_what_writes_to_directories_of_root_is_root(settings: tuple[str, ...]) -> None:
    root = {"agent", "cleaner"} | privileged(settings)
    assert {name for name, context in containers(settings) if not context.get("runAsNonRoot")} == root
    assert {name for name, context in containers(settings) if context["runAsUser"] == 0} == root


@pytest.mark.parametrize("settings", OF_AGENT)
def test_only_the_agent_shares_a_namespace_of_the_node_for_the_process_ids_of_the_driver(
    settings: tuple[str, ...],
) -> None:
    for name, pod in pods(settings).items():
        shared = [key for key in ("hostNetwork", "hostIPC", "hostPID") if pod.get(key)]
        assert shared == (["hostPID"] if name in ("agent", "mps") else []), name


def test_the_mps_service_has_no_token_and_is_replaced_only_by_hand() -> None:
    """Each replacement ends the programs that use MPS, and so would a liveness probe or a limit on memory."""
    made = objects(values.plain(values.read([], ["agent.mps=true"])), (1, 36, 0))
    (service,) = (each for each in made if (each["kind"], each["metadata"]["name"]) == ("DaemonSet", MPS))
    assert service["spec"]["updateStrategy"] == {"type": "OnDelete"}
    pod = service["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert not {"livenessProbe", "startupProbe"} & container.keys() and "limits" not in container["resources"]
    assert [each for each in made for one in each.get("subjects", ()) if one["name"] == MPS] == []


def test_the_files_of_containers_are_mounted_where_node_agent_and_cleaner_see_it() -> None:
    made = pods(("agent.filesMiB=32", "agent.stateDir=/data/lamina"))
    (mounting,) = made["agent"]["initContainers"]
    assert mounting["args"] == ["mount-files"]
    assert {each["name"]: each["value"] for each in mounting["env"]} == {
        "LAMINA_STATE_DIR": "/data/lamina",
        "LAMINA_FILES_MIB": "32",
    }
    seen = {
        (name, each["mountPath"]): each["mountPropagation"]
        for name, container in (
            ("mount-files", mounting),
            ("agent", made["agent"]["containers"][0]),
            ("cleaner", made["cleaner"]["containers"][0]),
        )
        for each in container["volumeMounts"]
        if "mountPropagation" in each
    }
    assert seen == {
        ("mount-files", "/data/lamina"): "Bidirectional",
        ("agent", "/data/lamina"): "HostToContainer",
        ("cleaner", "/run/lamina-parent"): "Bidirectional",
    }
    assert "initContainers" not in pods(("agent.filesMiB=0",))["agent"]


@pytest.mark.parametrize("size", ["-1", "65537", "1Gi", "null"])
def test_the_tmpfs_for_the_files_of_containers_has_a_size(size: str) -> None:
    with pytest.raises(BadInput, match=r"agent\.filesMiB"):
        values.read([], [f"agent.filesMiB={size}"])


@pytest.mark.parametrize("size", ["0", "-1", "524289", "1Gi", "null"])
def test_the_shared_memory_of_mps_has_a_size(size: str) -> None:
    with pytest.raises(BadInput, match=r"mps\.sharedMemoryMiB"):
        values.read([], [f"mps.sharedMemoryMiB={size}"])


def test_mounts_of_the_mps_service_reach_the_node_and_the_agent() -> None:
    made = pods(("agent.mps=true", "mps.sharedMemoryMiB=2048"))
    reported = {name: made[name]["containers"][0] for name in ("agent", "mps", "cleaner")}
    mounts = {name: {each["name"]: each for each in one["volumeMounts"]}["mps"] for name, one in reported.items()}
    assert {name: (each["mountPath"], each["mountPropagation"]) for name, each in mounts.items()} == {
        "agent": (DEFAULT_MPS_ROOT, "HostToContainer"),
        "mps": (DEFAULT_MPS_ROOT, "Bidirectional"),
        "cleaner": (DEFAULT_MPS_ROOT, "Bidirectional"),
    }
    assert SOCKET.parent == Path(DEFAULT_MPS_ROOT), "agent and service have the directory of the socket"
    assert {"name": "LAMINA_MPS_SHM_MIB", "value": "2048"} in reported["mps"]["env"]


@pytest.mark.parametrize(("written", "args"), [("true", ["mps", "--multi-user"]), ("false", ["mps"])])
def test_the_mps_service_serves_all_users_as_the_value_says(written: str, args: list[str]) -> None:
    assert pods(("agent.mps=true", f"mps.multiUser={written}"))["mps"]["containers"][0]["args"] == args
