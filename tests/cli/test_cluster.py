"""Reading a whole cluster: what cannot be understood is left out, what repeats is worked out once."""

import logging
from typing import Any

import pytest

from lamina.cli import cluster
from lamina.ports.kube import GRANTS, INVENTORIES, PODS, Object
from lamina.ports.kube.fake import FakeKube
from tests.control.cluster import gpu_pod, inventory_object


async def test_replicas_are_explained_by_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    kube, searches = FakeKube(), []
    for name, memory in (("a", 90000), ("b", 90000), ("c", 80000)):
        await kube.create(PODS, gpu_pod(name, gpumem=memory))
    await kube.create(INVENTORIES, inventory_object())
    seen = await cluster.read(kube)

    def counted(*asked: Any) -> Any:
        searches.append(asked)
        return original(*asked)

    original = cluster.explain
    monkeypatch.setattr(cluster, "explain", counted)
    told = [explanation.summary for pod in seen.pods if (explanation := seen.explain(pod)) is not None]
    assert told[0] == told[1] == "node node-0: needs 90000 MiB; the largest GPU has 32768 MiB"
    assert "needs 80000 MiB" in told[2]
    assert len(searches) == 2


async def test_what_cannot_be_read_is_named_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    kube = FakeKube()
    await kube.create(INVENTORIES, inventory_object())
    broken: Object = {"metadata": {"name": "node-1"}, "spec": {"node": "node-1", "gpus": [{"uuid": 1}]}}
    await kube.create(INVENTORIES, broken)
    await kube.create(GRANTS, {"metadata": {"name": "g", "namespace": "default"}, "spec": {}})
    with caplog.at_level(logging.WARNING):
        seen = await cluster.read(kube)
    assert list(seen.inventories) == ["node-0"] and not seen.grants
    assert "inventory node-1 cannot be read" in caplog.text and "grant default/g cannot be read" in caplog.text
