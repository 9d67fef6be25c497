"""What the containers of an installation may do: the least that their mode needs."""

from collections.abc import Iterator

import pytest

from lamina.install import values
from lamina.install.cleaner import cleaner
from lamina.install.objects import objects
from lamina.install.render import render
from lamina.install.terms import Setting
from lamina.ports.kube import Object

OF_AGENT = {
    (): ["CHOWN"],
    ("agent.mig=true",): ["CHOWN", "SYS_ADMIN"],
    ("agent.mps=true",): ["CHOWN", "SYS_ADMIN"],
    ("agent.mig=true", "agent.mps=true"): ["CHOWN", "SYS_ADMIN"],
}
OF_CLEANER = {settings: ["SYS_ADMIN"] if "agent.mps=true" in settings else [] for settings in OF_AGENT}
"""It restores the compute modes of GPUs that were shared by MPS."""


def pods(settings: tuple[str, ...]) -> dict[str, Object]:
    """The pods' specifications by their workload, also of the one that an uninstallation makes."""
    made = render(objects(), Setting(values.plain(values.read([], settings)), (1, 36, 0)))
    workloads = [each for each in made if "template" in each.get("spec", {})]
    workloads += [cleaner(each) for each in workloads if each["kind"] == "DaemonSet"]
    return {each["metadata"]["name"].removeprefix("lamina-"): each["spec"]["template"]["spec"] for each in workloads}


def containers(settings: tuple[str, ...]) -> Iterator[tuple[str, Object]]:
    """The security contexts of all containers, with the names of their workloads."""
    for name, pod in pods(settings).items():
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            yield name, container["securityContext"]


@pytest.mark.parametrize("settings", OF_AGENT)
def test_no_container_writes_its_image_or_calls_what_the_runtime_filters(settings: tuple[str, ...]) -> None:
    names = [name for name, _ in containers(settings)]
    assert names == ["control", "scheduler", "scheduler", "agent", "cleaner"]
    for name, context in containers(settings):
        assert context["readOnlyRootFilesystem"] is True, name
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not context.get("privileged"), name


@pytest.mark.parametrize("settings", OF_AGENT)
def test_capabilities_are_those_that_the_mode_needs(settings: tuple[str, ...]) -> None:
    allowed = {"agent": OF_AGENT[settings], "cleaner": OF_CLEANER[settings]}
    for name, context in containers(settings):
        assert context["capabilities"]["drop"] == ["ALL"], name
        added = context["capabilities"].get("add", [])
        assert added == allowed.get(name, []), name
        # Kubernetes requires it with SYS_ADMIN.
        assert context["allowPrivilegeEscalation"] is ("SYS_ADMIN" in added), name


@pytest.mark.parametrize("settings", OF_AGENT)
def test_only_what_writes_to_directories_of_root_is_root(settings: tuple[str, ...]) -> None:
    root = {"agent", "cleaner"}
    assert {name for name, context in containers(settings) if not context.get("runAsNonRoot")} == root
    assert {name for name, context in containers(settings) if context["runAsUser"] == 0} == root


@pytest.mark.parametrize("settings", OF_AGENT)
def test_only_the_agent_shares_a_namespace_of_the_node_for_the_process_ids_of_the_driver(
    settings: tuple[str, ...],
) -> None:
    for name, pod in pods(settings).items():
        shared = [key for key in ("hostNetwork", "hostIPC", "hostPID") if pod.get(key)]
        assert shared == (["hostPID"] if name == "agent" else []), name
