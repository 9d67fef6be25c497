"""Taking Lamina out: nothing of it is left, and pods without GPUs never wait. Runs last in this folder."""

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from tests.cluster.components.cluster import RealCluster
from tests.cluster.components.commands import Unavailable
from tests.cluster.components.installation import Installation
from tests.cluster.components.node import RealNode
from tests.cluster.installed.queries import (
    NAMESPACE,
    SEEN,
    SHARE,
    listed,
    parts,
    rolled_out,
    serves,
    whole,
)
from tests.cluster.queries import delete_pods, pod, running, sh
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
CHECKPOINT = "kubelet/device-plugins/kubelet_internal_checkpoint"
TAKEN_OUT_S = 400.0
"""All pods of Lamina end, those that clean the nodes at last; on a busy machine each takes more than a minute."""


class Uninstalling(threading.Thread):
    """`lamina reset`, then `lamina uninstall`, while the test goes on."""

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


def ours(cluster: RealCluster) -> list[str]:
    """Names of objects of any kind, in any namespace, that tell of us."""
    kinds = cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    kinds = [kind for kind in kinds if not kind.startswith("events") and kind != "componentstatuses"]
    names = cluster.kubectl("get", ",".join(kinds), "-A", "-o", "name", "--ignore-not-found").splitlines()
    return [name for name in names if "lamina" in name]


def metadata(cluster: RealCluster) -> list[str]:
    """What nodes carry of ours."""
    found = []
    for node in listed(cluster, "nodes"):
        carried = [*node["metadata"]["labels"], *node["metadata"]["annotations"], *node["status"]["capacity"]]
        set_by_tests = {"nvidia.com/gpu.present", "nvidia.com/gpu.deploy.device-plugin"}
        words = ("lamina", "hami", "vgpu", "nvidia.com", "4pd")
        found += [name for name in carried if name not in set_by_tests and any(word in name for word in words)]
    return found


def files(node: RealNode) -> list[str]:
    """What is left in the folders in which agents write."""
    inside = "find /var/run/cdi /var/lib/lamina /run/nvidia /var/lib/kubelet/device-plugins -type f -o -type s"
    found = node.sandbox.run("sh", "-c", f"{inside} 2>/dev/null; true").split()
    of_kubelet = ("kubelet.sock", "kubelet_internal_checkpoint", "DEPRECATION")
    return [path for path in found if not path.endswith(of_kubelet)]


def forget(node: RealNode) -> None:
    """Have kubelet forget what plugins offered, which it else does after five minutes."""
    node.kubelet.stop()
    (node.folder / "disk/lib" / CHECKPOINT).unlink()
    node.kubelet.start()
    node.wait()


def nothing_is_left(cluster: RealCluster) -> None:
    assert ours(cluster) == []
    assert [path for node in cluster.nodes for path in files(node)] == []
    assert not any((node.folder / "disk/lib/lamina").exists() for node in cluster.nodes)


def is_there(lamina: Installation) -> bool:
    """Whether Lamina's namespace exists."""
    return "Error" not in lamina.shell(f"kubectl get namespace {NAMESPACE} 2>&1 || true")


def is_taken_out(lamina: Installation) -> bool:
    """Whether the record of the installation is gone, which goes last."""
    return "Error" in lamina.shell("kubectl get clusterrolebinding lamina-controller 2>&1 || true")


def take_out(cluster: RealCluster, lamina: Installation, *, keeps_namespace: bool = False) -> None:
    """By the document's two commands, while pods without GPUs come."""
    uninstalling = Uninstalling(lamina)
    with cluster.steps("uninstalling Lamina, until nothing is there"):
        uninstalling.start()
        wait_until(
            lambda: is_taken_out(lamina),
            lambda: uninstalling.trouble or cluster.kubectl("get", "all", "-n", NAMESPACE),
            TAKEN_OUT_S,
        )
    with cluster.steps("one pod without a GPU after that, from apply to Running"):
        cluster.kubectl("apply", "-f", "-", stdin=pod("plain"))
        running(cluster, "plain")
    for node in cluster.nodes:
        forget(node)
    uninstalling.join(180)
    assert not uninstalling.is_alive()
    assert uninstalling.trouble == ""
    wait_until(lambda: is_there(lamina) == keeps_namespace, lambda: cluster.kubectl("get", "namespaces"))
    cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout=TAKEN_OUT_S)
    nothing_is_left(cluster)
    assert metadata(cluster) == []


def test_it_refuses_while_pods_use_gpus_and_takes_everything_when_they_are_gone(
    cluster: RealCluster, both: Installation
) -> None:
    cluster.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE))
    running(cluster, "share")
    for command in ("lamina reset", "lamina uninstall"):
        with pytest.raises(Unavailable, match="1 pod uses GPUs: default/share"):
            both.documented(command)
    assert SEEN in sh(cluster, "share", "nvidia-smi")
    delete_pods(cluster)
    take_out(cluster, both)


def test_helm_installs_upgrades_rolls_back_and_uninstalls(cluster: RealCluster, both: Installation) -> None:
    """From the chart of an earlier version, where one is tagged, to an image of another tag, and to an agent that may
    cut GPUs by MIG. A pod runs all the time."""
    if not both.has_helm:
        pytest.skip("no helm on PATH")
    chart, tag = both.folder / "lamina-chart", both.image.rpartition(":")[2]
    if is_there(both):  # the test before this one did not run
        take_out(cluster, both)

    def documented(beginning: str, more: str = "", folder: Path = chart) -> None:
        both.shell(both.command(beginning).replace("lamina-chart", str(folder)) + more)

    with cluster.steps("installing Lamina by Helm, from install to ready"):
        documented("lamina install --chart")
        documented("helm install lamina", f" --set image.tag={tag}", earlier_chart(both.folder) or chart)
        whole(cluster)
        serves(cluster, "node1")
    cluster.kubectl("apply", "-f", "-", stdin=pod("share", limits=SHARE))
    running(cluster, "share")
    containers = container_ids(cluster, "share")
    for node in cluster.nodes:
        node.ctr("images", "tag", "--force", both.image, f"{both.image}-next")
    with cluster.steps("another release by Helm, until it runs everywhere"):
        documented("helm upgrade", f" --set image.tag={tag}-next")
        all_are(cluster, f"{both.image}-next", capabilities={"drop": ["ALL"], "add": ["CHOWN", "SYS_ADMIN"]})
    both.shell(f"helm test lamina --namespace {NAMESPACE} && kubectl delete pod lamina-test --namespace {NAMESPACE}")
    cluster.kubectl("apply", "-f", "-", stdin=pod("newer", limits=SHARE))
    running(cluster, "newer")
    with cluster.steps("back by Helm, until that runs everywhere"):
        documented("helm rollback")
        all_are(cluster, both.image, capabilities={"drop": ["ALL"], "add": ["CHOWN"]})
    for name in ("share", "newer"):
        assert SEEN in sh(cluster, name, "nvidia-smi")
    assert container_ids(cluster, "share") == containers
    delete_pods(cluster)
    take_out(cluster, both, keeps_namespace=True)
    assert json.loads(both.shell("helm list --all-namespaces --output json")) == []


def earlier_chart(folder: Path) -> Path | None:
    """The chart of the revision that LAMINA_UPGRADE_FROM names, else of the newest tag; None where there is no tag."""
    newest = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    revision = os.environ.get("LAMINA_UPGRADE_FROM") or newest.stdout.strip()
    if not revision:
        return None
    archive = subprocess.run(
        ["git", "archive", revision, "deploy/helm/lamina"], cwd=ROOT, capture_output=True, check=True
    )
    earlier = folder / "earlier"
    earlier.mkdir()
    subprocess.run(["tar", "-x", "-C", str(earlier)], input=archive.stdout, check=True)
    return earlier / "deploy/helm/lamina"


def container_ids(cluster: RealCluster, name: str) -> str:
    return cluster.kubectl("get", "pod", name, "-o", "jsonpath={.status.containerStatuses[*].containerID}")


def all_are(cluster: RealCluster, image: str, capabilities: dict[str, list[str]]) -> None:
    """Wait until all pods are of this image, and see what agents may then."""
    for what in ("daemonset/lamina-agent", "deployment/lamina-controller", "deployment/lamina-scheduler"):
        rolled_out(cluster, what)
    whole(cluster)
    for each in parts(cluster):
        for container in [*each["spec"]["containers"], *each["spec"].get("initContainers", [])]:
            assert container["image"] == image or container["name"] == "scheduler"
            assert (container["name"] != "agent") or container["securityContext"]["capabilities"] == capabilities
