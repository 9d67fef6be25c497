"""S3 on real kubelets: the configuration of NVIDIA's plugin on eight A100, and two programs on one T4."""

import re
from collections.abc import Iterator

import pytest

from tests.cluster.rows.replay import Replay
from tests.scenarios import nvidia_config as plugin
from tests.scenarios import one_gpu
from tests.scenarios.nvidia import GPU, label, node_events, offers, publish, use, visible
from tests.scenarios.rows import TABLE
from tests.seeds import piped, seed
from tests.waiting import wait_until

ROWS = TABLE["S3"]


@pytest.fixture
def lab(served: Replay) -> Iterator[Replay]:
    use(served, {"name": plugin.MAP, "default": ""})
    yield served
    served.delete_workloads()


def files() -> list[str]:
    """The document's two files: one without sharing, and one with two replicas."""
    return re.findall(r"^(version: v1\nflags:.*?)^EOF$", seed("003"), re.MULTILINE | re.DOTALL)


def test_s3_1_the_documents_file_is_read_and_an_unknown_field_refused_by_name(lab: Replay) -> None:
    plain, twice = files()
    publish(lab, plugin.MAP, {"plain": plain, "twice": twice, "unknown": twice.replace("sleepInterval", "sleeping")})
    label(lab, "twice")
    offers(lab, {GPU: 16})
    label(lab, "unknown")
    wait_until(lambda: "sleeping" in str(refusals(lab)), lambda: str(refusals(lab)))
    label(lab, "plain")
    offers(lab, {GPU: 8})


def refusals(lab: Replay) -> list[str]:
    return node_events(lab, "ConfigurationRefused")


globals().update(ROWS.tests)


def test_s3_6_two_programs_on_one_gpu_get_half_of_its_time_each(served: Replay) -> None:
    """The document's own file and pods; they multiply for 30 seconds, and what each got is the GPU's own account."""
    served.become("T4", 1)
    publish(served, plugin.MAP, {"default": files()[1]})
    use(served, {"name": plugin.MAP, "default": "default"})
    offers(served, {GPU: 2})
    served.apply(next(text for text in piped(seed("003")) if one_gpu.PODS[0] in text))
    wait_until(lambda: served.phases() == {"Running": 2}, lambda: served.kubectl("describe", "pods"))
    assert visible(served, one_gpu.PODS[0]) == visible(served, one_gpu.PODS[1]) != ""
    wait_until(lambda: one_gpu.busy(one_gpu.gpu(served)), lambda: str(one_gpu.gpu(served)))
    shares, _ = one_gpu.measure(served)
    assert shares == pytest.approx([0.5, 0.5], abs=0.02)
    served.delete_workloads()
