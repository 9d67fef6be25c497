"""S2 on real kubelets: MPS as the document about GPU sharing on OpenShift sets it up, on two A100."""

from tests.cluster.rows.replay import Replay
from tests.scenarios import mps
from tests.scenarios.nvidia import SHARED, pod
from tests.scenarios.rows import TABLE
from tests.waiting import wait_until

ROWS = TABLE["S2 MPS"]
ROOT = "/run/nvidia/mps"


globals().update(ROWS.tests)


def test_s2_8_each_daemon_gets_the_limits(lab: Replay) -> None:
    mps.got_the_limits([path.read_text() for path in lab.file_of_node(ROOT).glob("*/log/control.log")])


def test_s2_8_a_pod_is_a_client_with_its_part(lab: Replay) -> None:
    lab.apply(pod("client", resource=SHARED))
    mps.running(lab, "client")
    assert mps.inside(lab, "client", "echo $CUDA_MPS_PIPE_DIRECTORY").strip() == f"/mps/{SHARED}/pipe"
    assert mps.got_a_tenth(lab, "client", "--memory-mib", "3000"), "though no one else is there"
    assert "out of memory" in mps.load(lab, "client", "--memory-mib", "4096")


def test_s2_10_a_reset_leaves_no_daemon_behind(lab: Replay) -> None:
    lab.apply(pod("client", resource=SHARED))
    mps.running(lab, "client")
    assert "client" in lab.lamina("reset", "--yes").stderr
    lab.delete_workloads()
    done = lab.lamina("reset", "--yes")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: not list(lab.file_of_node(ROOT).glob("GPU-*")), lambda: "folders of MPS stay")
