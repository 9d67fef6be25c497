"""Taking Lamina out: nothing of it is left, and pods without GPUs never wait. Runs last in this folder."""

import json
import threading

import pytest

from tests.cluster.asking import delete_pods, pod, running, sh, until
from tests.cluster.installed.asking import (
    NAMESPACE,
    ROLLOUT_S,
    SEEN,
    SHARE,
    listed,
    parts,
    rolled_out,
    serves,
    whole,
)
from tests.cluster.stage.commands import Unavailable
from tests.cluster.stage.installation import Installation
from tests.cluster.stage.node import Node
from tests.cluster.stage.stage import Stage

CHECKPOINT = "kubelet/device-plugins/kubelet_internal_checkpoint"


class Uninstalling(threading.Thread):
    """`lamina reset`, then `lamina uninstall`, beside the test."""

    def __init__(self, lamina: Installation) -> None:
        super().__init__(daemon=True)
        self.trouble = ""
        self._lamina = lamina

    def run(self) -> None:
        try:
            self._lamina.documented("lamina reset")
            self._lamina.documented("lamina uninstall", timeout=600)
        except Unavailable as error:
            self.trouble = str(error)


def ours(stage: Stage) -> list[str]:
    """Names of objects of any kind, in any namespace, that tell of us."""
    kinds = stage.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    kinds = [kind for kind in kinds if not kind.startswith("events") and kind != "componentstatuses"]
    names = stage.kubectl("get", ",".join(kinds), "-A", "-o", "name", "--ignore-not-found").splitlines()
    return [name for name in names if "lamina" in name]


def marks(stage: Stage) -> list[str]:
    """What nodes carry of ours."""
    found = []
    for node in listed(stage, "nodes"):
        carried = [*node["metadata"]["labels"], *node["metadata"]["annotations"], *node["status"]["capacity"]]
        set_by_tests = {"nvidia.com/gpu.present", "nvidia.com/gpu.deploy.device-plugin"}
        words = ("lamina", "hami", "vgpu", "nvidia.com", "4pd")
        found += [name for name in carried if name not in set_by_tests and any(word in name for word in words)]
    return found


def files(node: Node) -> list[str]:
    """What is left in the folders in which agents write."""
    inside = "find /var/run/cdi /var/lib/lamina /run/nvidia /var/lib/kubelet/device-plugins -type f -o -type s"
    found = node.room.run("sh", "-c", f"{inside} 2>/dev/null; true").split()
    of_kubelet = ("kubelet.sock", "kubelet_internal_checkpoint", "DEPRECATION")
    return [path for path in found if not path.endswith(of_kubelet)]


def forget(node: Node) -> None:
    """Have kubelet forget what plugins offered, which it else does after five minutes."""
    node.kubelet.stop()
    (node.folder / "disk/lib" / CHECKPOINT).unlink()
    node.kubelet.start()
    node.wait()


def nothing_is_left(stage: Stage) -> None:
    assert ours(stage) == []
    assert [path for node in stage.nodes for path in files(node)] == []
    assert not any((node.folder / "disk/lib/lamina").exists() for node in stage.nodes)


def take_out(stage: Stage, lamina: Installation) -> None:
    """By the document's two commands, while pods without GPUs come."""
    uninstalling = Uninstalling(lamina)
    with stage.steps("uninstalling Lamina, until the namespace is gone"):
        uninstalling.start()
        until(
            lambda: "Error" in lamina.shell(f"kubectl get namespace {NAMESPACE} 2>&1 || true"),
            lambda: uninstalling.trouble or stage.kubectl("get", "all", "-n", NAMESPACE),
            ROLLOUT_S,
        )
    with stage.steps("one pod without a GPU after that, from apply to Running"):
        stage.kubectl("apply", "-f", "-", stdin=pod("plain"))
        running(stage, "plain")
    for node in stage.nodes:
        forget(node)
    uninstalling.join(180)
    assert not uninstalling.is_alive()
    assert uninstalling.trouble == ""
    nothing_is_left(stage)
    assert marks(stage) == []


def test_it_refuses_while_pods_use_gpus_and_takes_everything_when_they_are_gone(
    stage: Stage, both: Installation
) -> None:
    stage.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE))
    running(stage, "share")
    for command in ("lamina reset", "lamina uninstall"):
        with pytest.raises(Unavailable, match="1 pod uses GPUs: default/share"):
            both.documented(command)
    assert SEEN in sh(stage, "share", "nvidia-smi")
    delete_pods(stage)
    take_out(stage, both)


def test_helm_installs_upgrades_and_rolls_back_and_it_is_taken_out_the_same_way(
    stage: Stage, lamina: Installation
) -> None:
    """The upgrade is to an image of another tag, and to an agent that may cut GPUs by MIG."""
    if not lamina.has_helm:
        pytest.skip("no helm on PATH")
    chart = lamina.folder / "lamina-chart"

    def documented(beginning: str, more: str = "") -> None:
        lamina.shell(lamina.command(beginning).replace("lamina-chart", str(chart)) + more)

    with stage.steps("installing Lamina by Helm, from install to ready"):
        documented("lamina install --chart")
        documented("helm install lamina")
        whole(stage)
        serves(stage, "node1")
    stage.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE))
    running(stage, "share")
    for node in stage.nodes:
        node.ctr("images", "tag", "--force", lamina.image, f"{lamina.image}-next")
    with stage.steps("another release by Helm, until it runs everywhere"):
        documented("helm upgrade", f" --set image.tag={lamina.image.rpartition(':')[2]}-next")
        all_are(stage, f"{lamina.image}-next", capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]})
    with stage.steps("back by Helm, until that runs everywhere"):
        documented("helm rollback")
        all_are(stage, lamina.image, capabilities={"drop": ["ALL"]})
    assert SEEN in sh(stage, "share", "nvidia-smi")
    delete_pods(stage)
    take_out(stage, lamina)
    assert json.loads(lamina.shell("helm list --all-namespaces --output json")) == []


def all_are(stage: Stage, image: str, capabilities: dict[str, list[str]]) -> None:
    """Wait until all pods are of this image, and see what agents may then."""
    for what in ("daemonset/lamina-agent", "deployment/lamina-control", "deployment/lamina-scheduler"):
        rolled_out(stage, what)
    whole(stage)
    for each in parts(stage):
        for container in [*each["spec"]["containers"], *each["spec"].get("initContainers", [])]:
            assert container["image"] == image or container["name"] == "scheduler"
            assert (container["name"] != "agent") or container["securityContext"]["capabilities"] == capabilities
