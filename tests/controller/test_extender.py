"""The extender over real HTTP, word for word as kube-scheduler speaks."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from lamina.controller.run import serve
from lamina.controller.settings import ControllerSettings
from lamina.core.nodes import KEPT_OUT
from lamina.errors import BadInput
from lamina.ports.clock import SystemClock
from lamina.ports.kube import (
    EVENTS,
    INVENTORIES,
    MUTATING_WEBHOOKS,
    NODES,
    PODS,
    RESOURCE_QUOTAS,
    Unreachable,
)
from lamina.ports.kube.fake import FakeKube
from lamina.ports.listener import Address, parse_address
from tests.controller.binders import Bench
from tests.controller.cluster import RunningController, running
from tests.waiting import until
from tests.worlds.objects import admitted_pod, gpus, inventory_object


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[RunningController]:
    nodes = (("node-0", gpus()), ("node-1", gpus(1, memory=16160, prefix="T4")))
    async with running(FakeKube(), tmp_path, *nodes) as made:
        yield made


def unbound(**limits: Any) -> dict[str, Any]:
    pod = admitted_pod(**limits)
    pod["metadata"]["uid"] = "5d4e"
    return pod


GOLDEN_FILTER = [
    (
        unbound(gpumem=20000),
        {
            "nodenames": ["node-0"],
            "failedNodes": {
                "node-1": "needs 20000 MiB; the largest GPU has 16160 MiB",
                "node-2": "no GPU is offered on this node",
            },
            "failedAndUnresolvableNodes": {
                "node-1": "needs 20000 MiB; the largest GPU has 16160 MiB",
                "node-2": "no GPU is offered on this node",
            },
            "error": "",
        },
    ),
    (
        unbound(gpu=2),
        {
            "nodenames": ["node-0"],
            "failedNodes": {
                "node-1": "needs 2 GPUs; this node has 1",
                "node-2": "no GPU is offered on this node",
            },
            "failedAndUnresolvableNodes": {
                "node-1": "needs 2 GPUs; this node has 1",
                "node-2": "no GPU is offered on this node",
            },
            "error": "",
        },
    ),
    (
        unbound(),
        {
            "nodenames": ["node-0", "node-1", "node-2"],
            "failedNodes": {},
            "failedAndUnresolvableNodes": {},
            "error": "",
        },
    ),
    (
        unbound(gpumem="1.5"),
        {
            "nodenames": [],
            "failedNodes": {},
            "failedAndUnresolvableNodes": {},
            "error": 'container "main": nvidia.com/gpumem must be an integer from 1 to 2147483647, got 1.5',
        },
    ),
]


@pytest.mark.parametrize(("pod", "answer"), GOLDEN_FILTER)
async def test_filter_by_names(cluster: RunningController, pod: dict[str, Any], answer: dict[str, Any]) -> None:
    assert await cluster.scheduler.filter(pod, "node-0", "node-1", "node-2") == answer


async def test_filter_by_whole_nodes_answers_with_whole_nodes(cluster: RunningController) -> None:
    nodes = [{"metadata": {"name": name, "labels": {"x": "y"}}} for name in ("node-0", "node-1")]
    body = {"pod": unbound(gpumem=20000), "nodes": {"metadata": {}, "items": nodes}}
    answer = await cluster.scheduler.ask("filter", body)
    assert answer["nodes"]["items"] == nodes[:1] and "nodenames" not in answer
    scores = await cluster.scheduler.ask("prioritize", body)
    assert [each["host"] for each in scores] == ["node-0", "node-1"]


async def test_prioritize_scores_from_0_to_10(cluster: RunningController) -> None:
    first = await cluster.make(admitted_pod("first", gpumem=1000))
    body = {"pod": unbound(gpumem=1000), "nodenames": ["node-0", "node-1", "node-2"]}
    before = await cluster.scheduler.ask("prioritize", body)
    assert await cluster.scheduler.bind(first, "node-1") == ""
    after = {each["host"]: each["score"] for each in await cluster.scheduler.ask("prioritize", body)}
    assert [each["host"] for each in before] == ["node-0", "node-1", "node-2"]
    assert all(isinstance(each["score"], int) and 0 <= each["score"] <= 10 for each in before)
    assert after["node-1"] > after["node-0"], "binpack prefers the node in use"


@pytest.mark.parametrize("policy", ["", "binpack"])
def test_no_node_is_best_where_there_is_no_inventory(policy: str) -> None:
    """The last one may go between filter and prioritize, which kube-scheduler does not ask twice."""
    pod = unbound(gpumem=100)
    pod["metadata"]["annotations"] = {"hami.io/node-scheduler-policy": policy} if policy else {}
    bench = Bench()
    assert bench.scheduler.scores(bench.parse(pod), ["node-0"]).by_node() == {"node-0": 0}


@pytest.mark.parametrize(("policy", "expected"), [("binpack", [0, 10, 0]), ("spread", [10, 0, 9])])
async def test_a_small_pod_is_enough_to_distinguish_nodes(tmp_path: Path, policy: str, expected: list[int]) -> None:
    nodes = [(f"node-{number}", gpus(8, memory=81559, prefix=f"H{number}-")) for number in range(3)]
    async with running(FakeKube(), tmp_path, *nodes) as made:
        first = await made.make(admitted_pod("first", gpumem=100))
        assert await made.scheduler.bind(first, "node-1") == ""
        pod = unbound(gpumem=100)
        pod["metadata"]["annotations"] = {"hami.io/node-scheduler-policy": policy}
        answer = await made.scheduler.ask("prioritize", {"pod": pod, "nodenames": [name for name, _ in nodes]})
    assert [each["score"] for each in answer] == expected, "among equal nodes one is preferred"


async def test_what_other_pods_hold_is_failed_but_not_for_good(cluster: RunningController) -> None:
    for name in ("a", "b"):
        assert await cluster.scheduler.bind(await cluster.make(admitted_pod(name, gpumem=30000)), "node-0") == ""
    answer = await cluster.scheduler.filter(unbound(gpumem=10000), "node-0")
    assert answer["failedNodes"] == {"node-0": "needs 10000 MiB; the best GPU has 2768 MiB free"}


async def test_a_pod_that_fits_nowhere_gets_an_event_in_numbers(cluster: RunningController) -> None:
    pod = await cluster.make(admitted_pod("big", gpumem=40000))
    for _ in range(3):
        await cluster.scheduler.filter(pod, "node-0", "node-1")

    async def events() -> Any:
        return (await cluster.kube.list(EVENTS)).items

    (event,) = await until(events)
    assert (event["reason"], event["type"], event["involvedObject"]["name"]) == ("NoGpuFits", "Warning", "big")
    assert "needs 40000 MiB; the largest GPU has 32768 MiB" in event["message"]


async def test_a_quota_is_an_error_of_the_pod(cluster: RunningController) -> None:
    spec = {"hard": {"limits.nvidia.com/gpumem": "100"}}
    await cluster.kube.create(RESOURCE_QUOTAS, {"metadata": {"name": "q", "namespace": "default"}, "spec": spec})

    async def refused() -> bool:
        return "allows 100" in (await cluster.scheduler.filter(unbound(gpumem=101), "node-0"))["error"]

    await until(refused)


@pytest.mark.parametrize("verb", ["filter", "prioritize", "bind"])
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"pod": 1}', b'{"pod": {}, "nodes": {"items": [{}]}}'])
async def test_what_is_no_request_is_answered_400(cluster: RunningController, verb: str, body: bytes) -> None:
    async with cluster.session.post(f"{cluster.urls['extenderHttp']}/{verb}", data=body) as response:
        assert response.status == 400 and verb in await response.text()


async def test_metrics_count_decisions_and_grants(cluster: RunningController) -> None:
    await cluster.scheduler.bind(await cluster.make(admitted_pod(gpumem=1000, gpucores=30)), "node-1")
    async with cluster.session.get(f"{cluster.urls['extenderHttp']}/metrics") as response:
        lines = (await response.text()).splitlines()
    labels = 'gpu="T4-0",model="V100-SXM2-32GB",node="node-1"'
    assert f"lamina_gpu_memory_granted_mebibytes{{{labels}}} 1000.0" in lines
    assert f"lamina_gpu_cores_granted_percent{{{labels}}} 30.0" in lines
    assert f"lamina_gpu_shares_granted{{{labels}}} 1.0" in lines
    assert 'lamina_decisions_total{outcome="bound",verb="bind"} 1.0' in lines
    assert 'lamina_decision_seconds_count{verb="bind"} 1.0' in lines


async def test_a_node_whose_inventory_cannot_be_read_offers_nothing(cluster: RunningController) -> None:
    await cluster.kube.patch(INVENTORIES, "node-0", {"spec": {"gpus": [{"uuid": 1}]}})

    async def gone() -> bool:
        return (await cluster.scheduler.filter(unbound(gpu=1), "node-0"))["nodenames"] == []

    await until(gone)
    await cluster.kube.patch(INVENTORIES, "node-0", {"spec": inventory_object("node-0")["spec"]})
    await until(lambda: _fits(cluster))


async def _fits(cluster: RunningController) -> bool:
    return (await cluster.scheduler.filter(unbound(gpu=1), "node-0"))["nodenames"] == ["node-0"]


@pytest.mark.parametrize("label", KEPT_OUT)
async def test_a_node_whose_labels_keep_lamina_out_offers_nothing(
    cluster: RunningController, label: tuple[str, tuple[str, ...]]
) -> None:
    """The agent has left, its inventory has not, and another plugin may allocate whole GPUs by the same name."""
    pod, (key, (value, *_)) = unbound(gpu=1, gpumem=1000), label

    async def fits() -> bool:
        return (await cluster.scheduler.filter(pod, "node-0"))["nodenames"] == ["node-0"]

    async def refused() -> bool:
        return not await fits()

    await cluster.kube.patch(NODES, "node-0", {"metadata": {"labels": {key: value}}})
    await until(refused)
    made = await cluster.kube.create(PODS, admitted_pod("late", gpumem=1000))
    assert "offers no GPUs" in await cluster.scheduler.bind(made, "node-0")
    await cluster.kube.patch(NODES, "node-0", {"metadata": {"labels": {key: "other"}}})
    await until(fits)


async def test_admission_is_registered_and_answers_over_https(cluster: RunningController) -> None:
    async def registered() -> Any:
        return (await cluster.kube.list(MUTATING_WEBHOOKS)).items

    (configuration,) = await until(registered)
    url = configuration["webhooks"][0]["clientConfig"]["url"]
    assert url == cluster.urls["admission"] and url.startswith("https://127.0.0.1:")
    insecure = ssl.create_default_context()
    insecure.check_hostname, insecure.verify_mode = False, ssl.CERT_NONE
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    asked = {"uid": "1", "operation": "CREATE", "namespace": "default", "object": admitted_pod(gpu=1), "dryRun": True}
    async with cluster.session.post(url, json=review | {"request": asked}, ssl=insecure) as response:
        assert (await response.json())["response"]["patchType"] == "JSONPatch"
    async with cluster.session.post(url, data=b"{}", ssl=insecure) as response:
        assert response.status == 400
    update = asked | {"operation": "UPDATE", "object": admitted_pod(gpu=-1)}
    async with cluster.session.post(url, json=review | {"request": update}, ssl=insecure) as response:
        assert (await response.json())["response"] == {"uid": "1", "allowed": True}


async def test_nothing_is_decided_before_the_ledger_is_rebuilt(tmp_path: Path) -> None:
    kube, down, stop = FakeKube(), True, asyncio.Event()
    kube.failing["list"] = lambda resource, name: Unreachable("not yet") if resource == PODS and down else None
    addresses, free = tmp_path / "addresses.json", Address("127.0.0.1", 0)
    settings = ControllerSettings(extender_http=free, admission=free, addresses_file=addresses)
    task = asyncio.create_task(serve(kube, SystemClock(), settings, stop))
    await until(addresses.exists, task=task)
    async with aiohttp.ClientSession(msgspec.json.decode(addresses.read_bytes())["extenderHttp"]) as session:

        async def ready() -> bool:
            async with session.get("/readyz") as response:
                return response.status == 200

        async def error(verb: str, body: dict[str, Any]) -> str:
            async with session.post(f"/{verb}", json=body) as response:
                return str((await response.json())["error"])

        async with session.get("/healthz") as response:
            assert response.status == 200
        await until(partial(_says, session, "the ledger is not synced yet; still to be listed: pods"))
        assert "not synced" in await error("filter", {"pod": unbound(gpu=1), "nodenames": ["node-0"]})
        bind = {"podName": "p", "podNamespace": "default", "podUID": "u", "node": "node-0"}
        assert "not synced" in await error("bind", bind)
        assert (await kube.list(MUTATING_WEBHOOKS)).items == [] and not await ready()
        down = False
        await until(ready, task=task)
    stop.set()
    await task


async def _says(session: aiohttp.ClientSession, text: str) -> bool:
    async with session.get("/readyz") as response:
        return response.status == 503 and await response.text() == text


async def test_a_port_in_use_is_one_sentence(cluster: RunningController) -> None:
    port = int(cluster.urls["extenderHttp"].rpartition(":")[2])
    settings = ControllerSettings(extender_http=Address("127.0.0.1", port), admission=Address("127.0.0.1", 0))
    with pytest.raises(BadInput, match=f"the extender over HTTP cannot listen on 127.0.0.1:{port}: Address already"):
        await serve(FakeKube(), SystemClock(), settings, asyncio.Event())


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        (":8443", Address("", 8443)),
        ("[::1]:80", Address("::1", 80)),
        ("localhost:65535", Address("localhost", 65535)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text, where="--extender-bind") == address


@pytest.mark.parametrize("text", ["", "8080", "host:", "host:x", "host:65536", "::1:80", "host:-1", "[host]:80", "a:²"])
def test_bad_addresses(text: str) -> None:
    with pytest.raises(BadInput, match=r"--extender-bind must be HOST:PORT"):
        parse_address(text, where="--extender-bind")
