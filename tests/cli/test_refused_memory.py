"""`lamina why` about a running pod: when it was refused GPU memory last."""

import pytest

from lamina.ports.kube import EVENTS, Object, Refused
from lamina.ports.kube.fake import FakeKube
from tests.cli.commands import Commands
from tests.worlds.clusters import cluster, container, grant, inventory, pod

RUNS = pod("runs", container(gpu=1, gpumem=1000), node="n")
STATE = ["runs is not pending: it is Running on node n.", "  main has 1000 MiB of GPU 0; compute: shared"]


def event(name: str, at: str, message: str, uid: str = "uid-default-runs", **fields: str) -> Object:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "runs", "uid": uid},
        "reason": "OutOfGpuMemory",
        "source": {"component": "lamina-agent"},
        "message": message,
        "lastTimestamp": at,
        **fields,
    }


async def with_events(*events: Object) -> FakeKube:
    kube = await cluster(inventory("n"), RUNS, grant(RUNS, "n", 1000))
    for each in events:
        await kube.create(EVENTS, each)
    return kube


async def why(monkeypatch: pytest.MonkeyPatch, kube: FakeKube) -> list[str]:
    return (await Commands(monkeypatch, kube).run("why", "runs")).output.splitlines()


async def test_the_last_refusal_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = await with_events(
        event("new", "2026-03-01T09:00:00Z", "container main: its limit is 1000 MiB"),
        event("old", "2026-03-01T08:00:00Z", "container main: before"),
    )
    assert await why(monkeypatch, kube) == [
        *STATE,
        "Refused at 2026-03-01T09:00:00Z: container main: its limit is 1000 MiB.",
    ]


async def test_events_of_others_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = event("earlier", "2026-03-01T09:00:00Z", "of an earlier pod of that name", uid="other")
    forged = event("forged", "2026-03-01T09:00:00Z", "by a tenant") | {"source": {"component": "mine"}}
    started = event("started", "2026-03-01T09:00:00Z", "Started", reason="Started")
    assert await why(monkeypatch, await with_events(earlier, forged, started)) == STATE


async def test_without_the_right_to_read_events_nothing_is_missing_but_that_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kube = await with_events(event("e", "2026-03-01T09:00:00Z", "m"))
    kube.failing["list"] = lambda resource, name: Refused("forbidden") if resource == EVENTS else None
    assert await why(monkeypatch, kube) == STATE
