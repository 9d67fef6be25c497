"""What the kubelet reports about its node and pods, to a server that fails on demand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lamina.ports.kube import LEASES, NODES, PODS, Unreachable
from lamina.ports.kube.fake import FakeKube
from lamina_lab.kubelet.model.settings import Settings
from lamina_lab.kubelet.pods.status_writer import StatusWriter
from lamina_lab.kubelet.reporting.node import NodeReporter
from tests.lab_kubelet.cluster import condition

NOW = 1_000_000.0
GPU = "nvidia.com/gpu"


class Reporter(NodeReporter):
    """A reporter of a node whose amounts of devices a test sets."""

    def __init__(self, kube: FakeKube, **labels: str) -> None:
        self.amounts = {GPU: (2, 2)}
        self.time = NOW
        nowhere = Path("/nowhere")
        settings = Settings(
            node="n",
            lab_id="lab",
            kubeconfig=nowhere,
            kubelet_dir=nowhere,
            cdi_dirs=(),
            programs=nowhere,
            root_dir=nowhere,
            socket=nowhere,
            labels=labels,
        )
        super().__init__(kube, settings, lambda now: self.amounts, lambda: self.time)


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube()


async def test_node_is_made_or_taken_over(kube: FakeKube) -> None:
    await Reporter(kube, gpu="on").register()
    await kube.patch(NODES, "n", {"metadata": {"labels": {"own": "kept"}}, "spec": {"unschedulable": True}})
    await Reporter(kube, gpu="off").register()
    node = await kube.get(NODES, "n")
    assert node["metadata"]["labels"]["gpu"] == "off"
    assert node["metadata"]["labels"]["own"] == "kept"
    assert node["spec"]["unschedulable"]
    assert node["status"]["allocatable"][GPU] == "2"


async def test_foreign_changes_are_corrected_and_nothing_else_is_sent(kube: FakeKube) -> None:
    reporter = Reporter(kube)
    await reporter.register()
    version = (await kube.get(NODES, "n"))["metadata"]["resourceVersion"]
    reporter.time += 60
    await reporter.correct_foreign_changes()
    assert (await kube.get(NODES, "n"))["metadata"]["resourceVersion"] == version
    await kube.patch(
        NODES, "n", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, subresource="status"
    )
    await reporter.correct_foreign_changes()
    assert condition(await kube.get(NODES, "n"), "Ready") == "True"
    reporter.amounts = {GPU: (0, 0)}
    await reporter.correct_foreign_changes()
    assert (await kube.get(NODES, "n"))["status"]["capacity"][GPU] == "0"


async def test_stopped_kubelet_says_so(kube: FakeKube) -> None:
    reporter = Reporter(kube)
    await reporter.register()
    await reporter.mark_not_ready()
    assert condition(await kube.get(NODES, "n"), "Ready") == "False"


async def test_lease_is_made_and_renewed(kube: FakeKube) -> None:
    reporter = Reporter(kube)
    await reporter.renew()
    reporter.time += 2
    await reporter.renew()
    lease = await kube.get(LEASES, "n", namespace="kube-node-lease")
    assert lease["spec"]["holderIdentity"] == "n"
    assert lease["spec"]["renewTime"] == "1970-01-12T13:46:42.000000Z"


async def made_pod(kube: FakeKube) -> dict[str, Any]:
    return await kube.create(PODS, {"metadata": {"name": "p", "namespace": "ns"}, "spec": {}}, namespace="ns")


async def test_status_is_sent_until_it_arrives_and_the_newest_wins(kube: FakeKube) -> None:
    failures = [Unreachable("down"), Unreachable("down")]
    kube.failing["patch"] = lambda resource, name: failures.pop() if failures else None
    writer = StatusWriter(kube, await made_pod(kube), retry_s=0)
    writer.put({"phase": "Pending"})
    writer.put({"phase": "Running"})
    await writer.flush()
    assert not failures
    assert (await kube.get(PODS, "p", namespace="ns"))["status"] == {"phase": "Running"}
    patches = [call for call in kube.calls if call[0] == "patch"]
    assert len(patches) == 3


async def test_status_is_not_given_to_another_pod_of_the_name(kube: FakeKube) -> None:
    pod = await made_pod(kube)
    writer = StatusWriter(kube, {**pod, "metadata": {**pod["metadata"], "uid": "older"}}, retry_s=0)
    await writer.delete()
    assert (await kube.get(PODS, "p", namespace="ns"))["metadata"]["uid"] == pod["metadata"]["uid"]


async def test_a_deletion_is_reported_until_it_is_accepted(kube: FakeKube) -> None:
    failures = [Unreachable("down"), Unreachable("down")]
    kube.failing["delete"] = lambda resource, name: failures.pop() if failures else None
    writer = StatusWriter(kube, await made_pod(kube), retry_s=0)
    await writer.delete()
    assert not failures
    assert (await kube.list(PODS)).items == []
    await writer.delete()  # already gone: nothing more to say
