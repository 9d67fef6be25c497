"""The feed: what happens in the cluster reaches the board, and a lost API server is never shown as current."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lamina.errors import BadInput
from lamina.operations.dashboard.board import Board
from lamina.operations.dashboard.feed import ClusterFeed
from lamina.ports.clock import FakeClock
from lamina.ports.kube import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    INVENTORIES,
    JOBS,
    NODES,
    PODS,
    NotFound,
    Refused,
    Resource,
    Unreachable,
)
from lamina.ports.kube.fake import FakeKube
from tests.waiting import until
from tests.worlds.clusters import cluster, container, inventory, pod

DOWN = "the Kubernetes server does not answer"


class RunningFeed:
    """A feed on a cluster."""

    def __init__(self, kube: FakeKube) -> None:
        self.kube, self.clock, self.board = kube, FakeClock(), Board()
        self.task = asyncio.ensure_future(ClusterFeed(kube, self.clock, self.board).run())

    async def names(self, *expected: str) -> None:
        """Wait until the board shows these pods, and is current."""
        await self.until(lambda: not self.board.current.lost and self.shown() == sorted(expected))

    def shown(self) -> list[str]:
        return sorted(card.name for card in self.board.current.document.pods.values())

    async def until(self, ask: object) -> None:
        await until(ask, lambda: self.board.current.lost, task=self.task, clock=self.clock)  # type: ignore[arg-type]

    def stop_server(self, error: Exception | None = None) -> None:
        for verb in ("list", "watch"):
            self.kube.failing[verb] = lambda resource, name: error or Unreachable(DOWN)  # type: ignore[return-value]


@asynccontextmanager
async def feed(kube: FakeKube) -> AsyncIterator[RunningFeed]:
    running = RunningFeed(kube)
    try:
        yield running
    finally:
        running.task.cancel()


def waiting(name: str) -> dict[str, object]:
    return pod(name, container(gpu=1, gpumem=99999))


async def test_what_happens_reaches_the_board() -> None:
    kube = await cluster(inventory(), waiting("a"))
    async with feed(kube) as running:
        await running.names("a")
        await kube.create(PODS, waiting("b"))
        await running.names("a", "b")
        await kube.delete(PODS, "a", namespace="default")
        await running.names("b")
        await kube.patch(NODES, "n", {"spec": {"unschedulable": True}})
        await running.until(lambda: running.board.current.document.nodes["n"].cordoned)


def refused_deployment(name: str) -> dict[str, object]:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": "150"}
    template = {"spec": {"containers": [{"name": "main", "image": "cuda", "resources": {"limits": limits}}]}}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": template}}


async def test_workloads_whose_pods_are_refused_are_among_those_that_wait() -> None:
    kube = await cluster(inventory(), waiting("a"))
    async with feed(kube) as running:
        await running.names("a")
        await kube.create(DEPLOYMENTS, refused_deployment("web"))
        await running.names("a", "deployment/web")
        document = running.board.current.document
        card = document.pods["default/deployment/web"]
        assert card.state == "refused" and "150" in card.reason
        assert document.cluster.waiting_pods == 1, "a workload is no pod"
        await kube.delete(DEPLOYMENTS, "web", namespace="default")
        await running.names("a")


async def test_workloads_that_may_not_be_listed_are_left_out() -> None:
    kube = await cluster(inventory(), waiting("a"))
    await kube.create(DEPLOYMENTS, refused_deployment("web"))
    await kube.create(JOBS, refused_deployment("job"))
    kube.failing["list"] = lambda resource, name: Refused("no right") if resource is DEPLOYMENTS else None
    async with feed(kube) as running:
        await running.names("a", "job/job")


def refusal(namespace: str, reason: str = "OutOfGpuMemory", component: str = "lamina-agent") -> dict[str, object]:
    """An event about the pod `a` of the namespace `default`, whatever its own namespace is."""
    return {
        "metadata": {"name": f"{namespace}-{reason}-{component}".lower(), "namespace": namespace},
        "involvedObject": {"uid": "uid-default-a"},
        "reason": reason,
        "source": {"component": component},
        "lastTimestamp": "2026-05-04T10:00:00Z",
        "message": f"{namespace}: its limit is 8000 MiB",
    }


async def test_refused_memory_reaches_the_pod_that_it_is_about() -> None:
    kube = await cluster(inventory(), waiting("a"))
    await kube.create(EVENTS, refusal("other"))
    async with feed(kube) as running:
        await running.names("a")
        for event in (refusal("default", component="tenant"), refusal("default", reason="Failed"), refusal("default")):
            await kube.create(EVENTS, event)
        said = "Refused at 2026-05-04T10:00:00Z: default: its limit is 8000 MiB."
        await running.until(lambda: running.board.current.document.pods["uid-default-a"].refused_memory == said)


async def test_a_node_that_is_not_ready() -> None:
    kube = await cluster(inventory())
    async with feed(kube) as running:
        await running.until(lambda: running.board.current.ready and running.board.current.document.nodes["n"].ready)
        conditions = [{"type": "Ready", "status": "Unknown"}]
        await kube.patch(NODES, "n", {"status": {"conditions": conditions}}, subresource="status")
        await running.until(lambda: not running.board.current.document.nodes["n"].ready)


async def test_a_lost_api_server_is_said_and_what_happened_meanwhile_is_read() -> None:
    kube = await cluster(inventory(), waiting("a"))
    async with feed(kube) as running:
        await running.names("a")
        running.stop_server()
        await running.until(lambda: running.board.current.lost == DOWN)
        assert running.shown() == ["a"]
        await kube.create(PODS, waiting("b"))
        kube.failing.clear()
        await running.names("a", "b")


async def test_the_health_of_gpus_is_remembered_and_not_known_while_the_server_is_lost() -> None:
    kube = await cluster(inventory(), waiting("a"))
    async with feed(kube) as running:
        await running.names("a")
        running.stop_server()
        await running.until(lambda: running.board.current.lost)
        kube.failing.clear()
        await kube.create(PODS, waiting("b"))
        await running.names("a", "b")
        health = running.board.current.document.nodes["n"].gpus[0].health
    assert [span.state for span in health] == ["healthy", "unknown", "healthy"]


async def test_a_server_that_is_silent_counts_as_lost() -> None:
    class Silent(FakeKube):
        silent = False

        async def list(self, resource: Resource, **where: str):  # type: ignore[no-untyped-def, override]
            if self.silent:
                await asyncio.Event().wait()
            return await super().list(resource, **where)

    kube = Silent()
    await kube.create(INVENTORIES, {"metadata": {"name": "n"}, "spec": {}})
    async with feed(kube) as running:
        await running.until(lambda: running.board.current.ready)
        kube.silent = True
        await running.until(lambda: "has not answered for 5 s" in running.board.current.lost)


async def test_a_history_that_is_cut_is_no_loss() -> None:
    kube = await cluster(inventory(), waiting("a"))
    async with feed(kube) as running:
        await running.names("a")
        await kube.create(PODS, waiting("b"))
        kube.forget_history()
        kube.disconnect()
        await running.names("a", "b")


async def test_without_lamina_it_ends_with_a_sentence() -> None:
    kube = FakeKube()
    kube.failing["list"] = lambda resource, name: NotFound("no such kind") if resource == INVENTORIES else None
    with pytest.raises(BadInput, match=r"^Lamina is not installed in this cluster"):
        await ClusterFeed(kube, FakeClock(), Board()).run()


@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_missing_rights_end_it_with_a_sentence(verb: str) -> None:
    kube = await cluster(inventory())
    kube.failing[verb] = lambda resource, name: Refused("nodes is forbidden") if resource == NODES else None
    with pytest.raises(Refused, match=r"^nodes is forbidden; https://.*/reference/rbac-commands/ lists the rights"):
        await ClusterFeed(kube, FakeClock(), Board()).run()


async def test_rights_that_are_lost_later_are_said() -> None:
    kube = await cluster(inventory())
    async with feed(kube) as running:
        await running.until(lambda: sum(call[:2] == ("list", CONFIG_MAPS) for call in kube.calls) > 2)
        running.stop_server(Refused("you may not"))
        await running.until(lambda: running.board.current.lost == "you may not")


async def test_a_defect_is_never_live() -> None:
    kube, clock, board = await cluster(inventory()), FakeClock(), Board()

    def fail(*_: object) -> None:
        raise ValueError("odd")

    task = asyncio.ensure_future(ClusterFeed(kube, clock, board, fail).run())  # type: ignore[arg-type]
    try:
        await until(lambda: "which is a defect" in board.current.lost, task=task, clock=clock)
    finally:
        task.cancel()
    assert not board.current.ready
