"""The extender's bodies byte for byte: as kube-scheduler writes them, whose Go types carry no JSON names, and as older
ones and other programs do. A Go program reads the answers whatever the case of their names."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.ports.kube import GRANTS
from lamina.ports.kube.fake import FakeKube
from tests.controller.cluster import RunningController, running
from tests.worlds.objects import admitted_pod, gpus

POD = (
    b'{"metadata":{"name":"p","namespace":"default","uid":"5d4e","creationTimestamp":null},"spec":{"containers":'
    b'[{"name":"main","image":"x","resources":{"limits":{"nvidia.com/gpu":"1","nvidia.com/gpumem":"20k"}}}]},'
    b'"status":{}}'
)
NODES = b'["node-0","node-1"]'
ARGUMENTS = [
    b'{"Pod":' + POD + b',"Nodes":null,"NodeNames":' + NODES + b"}",
    b'{"pod":' + POD + b',"nodenames":' + NODES + b"}",
]
FILTERED = (
    b'{"failedNodes":{"node-1":"needs 20000 MiB; the largest GPU has 16160 MiB"},'
    b'"failedAndUnresolvableNodes":{"node-1":"needs 20000 MiB; the largest GPU has 16160 MiB"},'
    b'"error":"","nodenames":["node-0"]}'
)
BINDINGS = [
    '{"PodName":"p","PodNamespace":"default","PodUID":"%s","Node":"node-0"}',
    '{"podName":"p","podNamespace":"default","podUID":"%s","node":"node-0"}',
]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[RunningController]:
    nodes = (("node-0", gpus()), ("node-1", gpus(1, memory=16160, prefix="T4")))
    async with running(FakeKube(), tmp_path, *nodes) as made:
        yield made


async def answered(cluster: RunningController, verb: str, body: bytes) -> bytes:
    headers = {"Content-Type": "application/json"}
    async with cluster.session.post(f"{cluster.urls['extenderHttp']}/{verb}", data=body, headers=headers) as response:
        assert response.status == 200, await response.text()
        return await response.read()


@pytest.mark.parametrize("body", ARGUMENTS)
async def test_filter_and_prioritize(cluster: RunningController, body: bytes) -> None:
    assert await answered(cluster, "filter", body) == FILTERED
    assert await answered(cluster, "prioritize", body) == b'[{"host":"node-0","score": 0},{"host":"node-1","score": 0}]'


async def test_whole_nodes(cluster: RunningController) -> None:
    lists = b'{"metadata":{},"items":[{"metadata":{"name":"node-1"}}]}'
    body = b'{"Pod":' + POD.replace(b"20k", b"1k") + b',"Nodes":' + lists + b',"NodeNames":null}'
    assert await answered(cluster, "filter", body) == (
        b'{"failedNodes":{},"failedAndUnresolvableNodes":{},"error":"","nodes":' + lists + b"}"
    )


@pytest.mark.parametrize("body", BINDINGS)
async def test_bind(cluster: RunningController, body: str) -> None:
    pod = await cluster.make(admitted_pod("p", gpumem=1000))
    assert await answered(cluster, "bind", (body % pod["metadata"]["uid"]).encode()) == b'{"error":""}'
    assert len((await cluster.kube.list(GRANTS)).items) == 1
