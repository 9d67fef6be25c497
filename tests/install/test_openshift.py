"""On OpenShift each pod is admitted by the context that its account may use, and that context allows no more than its
pods need. `admits` follows OpenShift's reference of SecurityContextConstraints; no OpenShift is at hand."""

from itertools import product
from typing import Any

import pytest

from lamina.install import values
from lamina.install.chart import objects
from lamina.install.cleaner import cleaner
from lamina.install.names import AGENT
from lamina.ports.kube import Object

NONROOT: Object = {
    "metadata": {"name": "nonroot-v2"},
    "allowHostDirVolumePlugin": False,
    "allowHostPID": False,
    "allowPrivilegedContainer": False,
    "allowPrivilegeEscalation": False,
    "allowedCapabilities": ["NET_BIND_SERVICE"],
    "readOnlyRootFilesystem": False,
    "runAsUser": {"type": "MustRunAsNonRoot"},
    "seLinuxContext": {"type": "MustRunAs"},
    "seccompProfiles": ["runtime/default"],
    "volumes": [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ],
}
"""OpenShift's own, as `oc get scc nonroot-v2` prints it in 4.15."""
SETTINGS = [
    tuple(chosen for chosen in choice if chosen)
    for choice in product(
        ("", "agent.filesMiB=0"), ("", "agent.mig=true"), ("", "agent.mps=true"), ("", "dashboard.enabled=true")
    )
]


def rendered(settings: tuple[str, ...]) -> list[Object]:
    return objects(values.plain(values.read([], ["openshift.enabled=true", *settings])), (1, 29, 0))


def refusals(context: Object, pod: Object) -> list[str]:
    """Why OpenShift would not admit the pod by this context."""
    found = []
    kinds = {kind for volume in pod.get("volumes", ()) for kind in volume if kind != "name"}
    allowed = set(context["volumes"])
    found += [f"volumes of kind {kind}" for kind in sorted(kinds - allowed)]
    if "hostPath" in kinds and not context["allowHostDirVolumePlugin"]:
        found.append("directories of the host")
    if pod.get("hostPID") and not context["allowHostPID"]:
        found.append("host PIDs")
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        found += [f"{container['name']}: {each}" for each in of_container(context, container["securityContext"])]
    return found


def of_container(context: Object, security: dict[str, Any]) -> list[str]:
    checks = {
        "privileged": security.get("privileged", False) and not context["allowPrivilegedContainer"],
        "escalation": security["allowPrivilegeEscalation"] and not context["allowPrivilegeEscalation"],
        "root": security["runAsUser"] == 0 and context["runAsUser"]["type"] == "MustRunAsNonRoot",
        "writable root": context["readOnlyRootFilesystem"] and not security["readOnlyRootFilesystem"],
        "SELinux": "seLinuxOptions" in security and context["seLinuxContext"]["type"] != "RunAsAny",
        "seccomp": security["seccompProfile"]["type"] != "RuntimeDefault",
        "capabilities": not set(security["capabilities"].get("add", ())) <= set(context["allowedCapabilities"]),
    }
    return [name for name, refused in checks.items() if refused]


@pytest.mark.parametrize("settings", SETTINGS)
def test_each_pod_is_admitted_by_the_context_of_its_account(settings: tuple[str, ...]) -> None:
    made = rendered(settings)
    (ours,) = (each for each in made if each["kind"] == "SecurityContextConstraints")
    (binding,) = (each for each in made if each["metadata"]["name"] == "lamina-nonroot")
    assert binding["roleRef"]["name"] == "system:openshift:scc:nonroot-v2"
    contexts = dict.fromkeys((subject["name"] for subject in binding["subjects"]), NONROOT)
    contexts |= {user.rpartition(":")[2]: ours for user in ours["users"]}
    workloads = [each for each in made if "template" in each.get("spec", {})]
    workloads += [cleaner(each) for each in workloads if each["metadata"]["name"] == AGENT]
    pods = [each["spec"]["template"]["spec"] for each in workloads]
    assert len(pods) >= 4
    for pod in pods:
        assert refusals(contexts[pod["serviceAccountName"]], pod) == []
    of_nodes = [pod for pod in pods if contexts[pod["serviceAccountName"]] is ours]
    for name in ("allowPrivilegedContainer", "allowPrivilegeEscalation"):
        lesser = {**ours, name: False}
        assert ours[name] == any(refusals(lesser, pod) for pod in of_nodes), f"{name} is more than what pods need"
    for capability in ours["allowedCapabilities"]:
        lesser = {**ours, "allowedCapabilities": [each for each in ours["allowedCapabilities"] if each != capability]}
        assert any(refusals(lesser, pod) for pod in of_nodes), f"no pod needs {capability}"
    assert any(refusals(NONROOT, pod) for pod in of_nodes), "OpenShift's own context would do"


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_writes_for_containers_knows_the_type(settings: tuple[str, ...]) -> None:
    for each in rendered(settings):
        pod = each.get("spec", {}).get("template", {}).get("spec", {})
        for container in (*pod.get("initContainers", ()), *pod.get("containers", ())):
            given = {variable["name"]: variable.get("value") for variable in container.get("env", ())}
            writes = container["name"] in ("mount-files", "agent", "mps")
            assert (given.get("LAMINA_SELINUX_TYPE") == "container_file_t") == writes, container["name"]
            security = container["securityContext"]
            if writes and not security.get("privileged"):
                assert security["seLinuxOptions"] == {"type": "spc_t"}, "another type may not write on the node"


def test_elsewhere_nothing_of_it_is_installed() -> None:
    made = objects(values.plain(values.read([], [])), (1, 29, 0))
    assert not any("openshift" in str(each).lower() or "seLinux" in str(each) for each in made)
