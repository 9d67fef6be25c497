"""S2: time-slicing as the document about GPU sharing on OpenShift sets it up, with its manifests as they stand."""

from tests.scenarios import time_slicing
from tests.scenarios.examples import EXAMPLES
from tests.scenarios.labs import Lab
from tests.scenarios.nvidia import GPU, label, offers, use
from tests.scenarios.rows import TABLE
from tests.scenarios.time_slicing import CONFIG

ROWS = TABLE["S2 time-slicing"]


eleven = time_slicing.eleven
globals().update(ROWS.tests)


def test_the_example_fills_both_gpus(lab: Lab) -> None:
    lab.kubectl("apply", "-f", str(EXAMPLES / "nvidia" / "time-slicing.yaml"))
    _choose(lab, "four")
    lab.kubectl("apply", "-f", str(EXAMPLES / "nvidia" / "counting.yaml"))
    lab.settled("app=counting", {"Pending": 1, "Running": 8})
    lab.delete_workloads()  # a GPU in use stays in its mode
    use(lab, {"name": "time-slicing-config"})
    _choose(lab, CONFIG)


def _choose(lab: Lab, config: str) -> None:
    """Have another configuration with as many devices, and wait until it is in force.

    Kubelet fails a pod that starts while the plugins are replaced. Without a configuration the node offers tickets,
    so the second count is that of the new plugins.
    """
    label(lab, "")
    offers(lab, {GPU: 20})
    label(lab, config)
    offers(lab, {GPU: 8})
