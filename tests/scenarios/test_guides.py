"""The tutorials and the guides about migration and daily use do what they say, step by step, in a lab."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.docs.guide_steps import DOCS, EXECUTED
from tests.scenarios.conftest import StartLab
from tests.scenarios.examples import EXAMPLES
from tests.scenarios.guides import GuideReader, Says
from tests.scenarios.labs import Lab, lamina
from tests.waiting import wait_until

OWN_LABS = {
    "tutorials/lab.md": [
        Says("make demo", r"in a browser: lamina lab dashboard"),
        Says("kubectl get nodes", r"node-0 +Ready"),
        Says("lamina pods", r"best GPU has 2768 MiB free"),
        Says("lamina why", r"is pending: node node-0: needs 10000 MiB"),
        Says("kubectl exec", r"0MiB / 10000MiB"),
        Says("kubectl exec", r"\[lamina\] Device 0 OOM \d+ / 10485760000"),
        Says("lamina lab down", r"is stopped"),
    ],
    "tutorials/claims.md": [
        Says("kubectl get resourceslices", r"node-0-gpu\.nvidia\.com-0"),
        Says("lamina pods", r"shared-claim +Running +node-0 +\d +4096 MiB +0 MiB +0 MiB +30 %"),
        Says("kubectl exec", r"MiB / +4096MiB"),
        Says("kubectl exec", r"out of memory"),
        Says("kubectl exec", r"^$"),
        Says("kubectl exec", r"3\d\d\dMiB / +4096MiB"),
        Says("kubectl exec", r"out of memory"),
        Says("lamina gpus", r"idle .*\n.*claims 24576 of 32768 MiB"),
        Says("lamina why", r"ResourceClaim default/neighbor\S* holds 20480 MiB of GPU \d of node node-0"),
        Says("lamina gpus", r"whole +32768 of 32768 MiB"),
    ],
    "tutorials/mig.md": [
        Says("lamina mig profiles", r"3g\.20gb"),
        Says("lamina mig apply", r"all-3g\.20gb"),
        Says("lamina mig list", r"success"),
        Says("kubectl describe node", r"nvidia.com/mig-3g.20gb: +4"),
        Says("kubectl logs mig", r"MIG 3g\.20gb"),
        Says("lamina mig list", r"all-disabled +success"),
        Says("kubectl exec mig-on-demand", r"MIG 2g\.10gb"),
        Says("lamina mig list", r"2g\.10gb"),
    ],
}
"""Pages that start labs themselves."""
PENDING = {"POD": "too-large"}
REFUSED = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: refused}
spec:
  selector: {matchLabels: {app: refused}}
  template:
    metadata: {labels: {app: refused}}
    spec: {containers: [{name: main, image: cuda, resources: {limits: {nvidia.com/gpumem-percentage: 150}}}]}
"""
GREEDY = """
apiVersion: v1
kind: Pod
metadata: {name: greedy}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: cuda
    command: [bash, -c, "gpu-load --memory-mib 2000; sleep 86400"]
    resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 1000}}
"""


def model_server() -> str:
    return (EXAMPLES / "resize.yaml").read_text().replace("name: resize", "name: model-server")


ONE_NODE: Mapping[str, tuple[list[str], list[Says]]] = {
    "tutorials/first-share.md": (
        [],
        [
            Says("lamina doctor", r"\d+ checks: 0 failed"),
            Says("lamina pods", r"(?s)Running.*10000 MiB.*Running.*10000 MiB"),
            Says("kubectl exec", r"0MiB / 10000MiB"),
            Says("lamina why", r"needs 900000 MiB; the largest GPU has 32768 MiB"),
        ],
    ),
    "how-to/resize.md": ([model_server()], [Says("kubectl annotate", r"annotated")]),
    "how-to/what-now.md": (
        [REFUSED, GREEDY, (EXAMPLES / "too-large.yaml").read_text()],
        [
            Says("kubectl get events", r"gpumem-percentage.*150"),
            Says("kubectl describe pod", r"NoGpuFits.*900000 MiB", PENDING),
            Says("kubectl logs", r"\[lamina\] Device 0 OOM \d+ / 1048576000"),
            Says("kubectl exec", r"MiB / +1000MiB"),
            Says("kubectl get pod", r'"nvidia.com/gpumem":"?1(000|k)'),
        ],
    ),
    "how-to/request-gpus.md": ([], [Says("lamina fits", r"1 pods? .*fits? now|fit now")]),
}
"""Pages for a lab with one node: what exists before, and what the page does."""
MOVED = [
    Says("lamina simulate", r"pods on 1 nodes with 2 GPUs"),
    Says("kubectl drain", r"drained"),
    Says("lamina doctor", r"\d+ checks: 0 failed"),
]
MIGRATIONS: Mapping[str, list[Says]] = {
    "how-to/migrate-from-hami.md": [
        MOVED[0],
        Says("lamina simulate", r"10 pods on 1 nodes with 2 GPUs"),
        *MOVED[1:],
        Says("lamina gpus", r"node-0 +0"),
    ],
    "how-to/migrate-from-kai.md": [*MOVED, Says("kubectl exec", r"(?s)MiB / +2000MiB.*MiB / +2000MiB")],
    "how-to/migrate-from-nvidia.md": [
        *MOVED,
        Says("lamina gpus", r"node-0 +0"),
        Says("kubectl describe", r"nvidia.com/gpu"),
    ],
    "how-to/migrate-from-volcano.md": [*MOVED, Says("lamina pods", r"Running +node-0 +\d +3000 MiB")],
}
WITH_CLAIMS = "how-to/migrate-from-nvidia-dra.md"
ELSEWHERE = {"how-to/migrate-from-hami-gradually.md"}
"""Followed by a test of its own, next to another system."""


def test_every_page_is_followed() -> None:
    followed = {*OWN_LABS, *ONE_NODE, *MIGRATIONS, WITH_CLAIMS, *ELSEWHERE}
    assert followed == {str(page.relative_to(DOCS)) for page in EXECUTED}


@pytest.fixture
def own_labs(tmp_path: Path) -> Iterator[GuideReader]:
    """A reader whose lab has the default name, in a folder of its own with a short path for sockets."""
    labs = tempfile.mkdtemp(prefix="lam")
    pending = "$(kubectl get pods --field-selector=status.phase=Pending -o name | head -1 | cut -d/ -f2)"
    reader = GuideReader(tmp_path, {"LAMINA_LABS": labs}, {"POD": pending})
    yield reader
    lamina("lab", "down", environment=reader.environment)
    shutil.rmtree(labs)


@pytest.mark.parametrize("page", OWN_LABS)
def test_a_tutorial_in_labs_of_its_own(own_labs: GuideReader, page: str) -> None:
    own_labs.follow(DOCS / page, OWN_LABS[page])


@pytest.mark.parametrize("page", ONE_NODE)
def test_a_page_on_one_node(lab: Lab, tmp_path: Path, page: str) -> None:
    manifests, expected = ONE_NODE[page]
    for manifest in manifests:
        lab.apply(manifest)
    if page == "how-to/resize.md":
        lab.kubectl("wait", "--for=condition=Ready", "pod/model-server", "--timeout=120s")
    reader = GuideReader(tmp_path, lab.environment, {"POD": "greedy", "NODE": "node-0"})
    (tmp_path / "deployment.yaml").write_text((EXAMPLES / "memory-and-compute.yaml").read_text())
    reader.follow(DOCS / page, expected)


@pytest.fixture(scope="module")
def moved(start_lab: StartLab) -> Lab:
    """A lab whose node has its annotation about GPUs, as a node that has been there for a while."""
    lab = start_lab("moved")
    wait_until(lambda: "node-nvidia-register" in lab.kubectl("get", "node", "node-0", "-o", "json"), "no annotation")
    return lab


@pytest.mark.parametrize("page", MIGRATIONS)
def test_a_migration_moves_a_node(moved: Lab, tmp_path: Path, page: str) -> None:
    """The lab's node has pods, is emptied, and then serves pods again."""
    moved.apply((EXAMPLES / "job.yaml").read_text())
    moved.apply((EXAMPLES / "memory-percentage.yaml").read_text())
    moved.kubectl("wait", "--for=condition=Ready", "pod/memory-percentage", "--timeout=120s")
    reader = GuideReader(tmp_path, moved.environment, {"NODE": "node-0", "NAMESPACE": "kube-public"})
    reader.follow(DOCS / page, MIGRATIONS[page])
    moved.delete_workloads()


def test_claims_move_to_another_driver(start_lab: StartLab, tmp_path: Path) -> None:
    lab = start_lab("dra", "--machines", str(EXAMPLES / "lab-dra.yaml"))
    wait_until(lambda: "node-0" in lab.kubectl("get", "resourceslices"), "no slice of the node")
    reader = GuideReader(tmp_path, lab.environment, {"NODE": "node-0"})
    slices = Says("kubectl get resourceslices", r"node-0-gpu\.nvidia\.com-0")
    reader.follow(DOCS / WITH_CLAIMS, [slices, slices, Says("kubectl exec", r"MiB / +4096MiB")])
