"""Two replicas of the control part: one follows the other, and what happens while there is none."""

import json

import pytest

from tests.cluster.asking import Object, phase, pod, running, until
from tests.cluster.installed.asking import (
    NAMESPACE,
    SHARE,
    TELLS,
    admits,
    granted,
    held,
    leader,
    listed,
    parts,
    totals,
    waiting,
    whole,
)
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.installation import Installation
from tests.cluster.stage.stage import Stage

MANY = 40
CARD_MIB = 32768


def kill(stage: Stage, replica: Object) -> None:
    """SIGKILL to the process of the container."""
    spec, status = replica["spec"], replica["status"]
    (node,) = (each for each in stage.nodes if each.name == spec["nodeName"])
    container = status["containerStatuses"][0]["containerID"].partition("//")[2]
    node.ctr("tasks", "kill", "--signal", "SIGKILL", container)


def test_leaders_die_while_pods_start(stage: Stage, both: Installation) -> None:
    """All four GPUs are full to the last pod in the end, and each container has what its grant says."""
    pods = [json.loads(pod(f"many-{number}", "sh", "-c", TELLS, limits=SHARE)) for number in range(MANY)]
    for each in pods:
        each["metadata"]["labels"] = {"app": "many"}

    def run() -> int:
        return sum(each["status"].get("phase") == "Running" for each in listed(stage, "pods"))

    with stage.steps(f"{MANY} pods with shares on two nodes, while two leaders die"):
        whole_list = {"apiVersion": "v1", "kind": "List", "items": pods}
        stage.kubectl("apply", "-f", "-", stdin=json.dumps(whole_list), timeout=120)
        made = {each["metadata"]["uid"] for each in listed(stage, "pods")}
        first = leader(stage)
        kill(stage, first)
        until(lambda: not replica_is(stage, first), lambda: "the replica is not killed")
        second = leader(stage)["metadata"]["name"]
        stage.kubectl("delete", "pod", second, "-n", NAMESPACE, "--grace-period=0", "--force")
        until(lambda: run() == MANY, lambda: stage.kubectl("get", "pods", "-o", "wide"), 180)
    assert {each["metadata"]["uid"] for each in listed(stage, "pods")} == made
    until(lambda: len(held(stage, "many")) == MANY, lambda: f"these told: {sorted(held(stage, 'many'))}")
    assert held(stage, "many") == granted(stage)
    given = totals(granted(stage))
    assert len(given) == 4
    assert max(given.values()) <= CARD_MIB
    whole(stage)


def replica_is(stage: Stage, replica: Object) -> bool:
    """Whether the replica still is what it was, the same container."""
    (now,) = (each for each in parts(stage, "control") if each["metadata"]["uid"] == replica["metadata"]["uid"])
    status = now["status"]["containerStatuses"][0]
    return "running" in status["state"] and bool(
        status["containerID"] == replica["status"]["containerStatuses"][0]["containerID"]
    )


def evict(stage: Stage, pod: Object) -> str:
    """Ask for it as a drain does; why it is refused, or nothing."""
    name, version = pod["metadata"]["name"], "v1" if stage.binaries.version >= (1, 22) else "v1beta1"
    body = {"apiVersion": f"policy/{version}", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
    try:
        stage.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body))
    except Unavailable as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("part", ["control", "scheduler"])
def test_one_replica_at_a_time_may_be_evicted(stage: Stage, both: Installation, part: str) -> None:
    whole(stage)
    first, second = parts(stage, part)
    until(lambda: evict(stage, first) == "", lambda: evict(stage, first))
    assert "disruption budget" in evict(stage, second)


@pytest.fixture
def without_control(stage: Stage, both: Installation) -> Installation:
    """Replicas are away; the test, or what follows it, brings them back."""
    stage.kubectl("scale", "deployment/lamina-control", "-n", NAMESPACE, "--replicas=0")
    until(lambda: not parts(stage, "control"), lambda: stage.kubectl("get", "pods", "-n", NAMESPACE))
    return both


def test_while_admission_is_down_others_do_not_notice_and_nobody_gets_a_gpu(
    stage: Stage, without_control: Installation
) -> None:
    """Servers from 1.28 on refuse pods with GPUs. Older ones let them pass to their own scheduler, but no agent starts
    them."""
    whole_gpu = {"nvidia.com/gpu": 1}
    try:
        stage.kubectl("apply", "-f", "-", stdin=pod("plain"))
        running(stage, "plain")
        if stage.binaries.version >= (1, 28):
            for limits in (SHARE, whole_gpu):
                with pytest.raises(Unavailable, match=r"lamina\.dev"):
                    stage.kubectl("apply", "-f", "-", stdin=pod("nothing", limits=limits))
        else:
            for name, limits in (("share", SHARE), ("nothing", whole_gpu)):
                stage.kubectl("apply", "-f", "-", stdin=pod(name, limits=limits))
            names = ("share", "nothing")
            until(
                lambda: all("no grant" in waiting(stage, name) for name in names),
                lambda: " ".join(waiting(stage, name) for name in names),
            )
            assert [phase(stage, name) for name in names] == ["Pending", "Pending"]
    finally:
        stage.kubectl("scale", "deployment/lamina-control", "-n", NAMESPACE, "--replicas=2")
        until(lambda: admits(stage), lambda: "admission does not come back")
    whole(stage)
    stage.kubectl("delete", "pod", "share", "nothing", "--ignore-not-found", "--grace-period=0", "--force")
    stage.kubectl("apply", "-f", "-", stdin=pod("nothing", limits=whole_gpu))
    running(stage, "nothing")
