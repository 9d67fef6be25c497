"""Events count their repetitions, and never stop who records them."""

import pytest

from lamina.ports.kube import EVENTS, PODS, EventRecorder, Object, Refused
from lamina.ports.kube.fake import FakeKube
from tests.worlds.clocks import SettableClock

POD: Object = {"metadata": {"name": "p", "namespace": "team", "uid": "u1"}}


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(1_700_000_000.0)


async def written(kube: FakeKube) -> list[Object]:
    return (await kube.list(EVENTS)).items


async def test_an_event_names_its_object(clock: SettableClock) -> None:
    kube = FakeKube()
    await EventRecorder(kube, "lamina", now=clock.wall).record(PODS, POD, "Waits", "why", warning=True)
    (event,) = await written(kube)
    involved = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "team", "uid": "u1"}
    assert event["involvedObject"] == involved and event["metadata"]["namespace"] == "team"
    assert (event["reason"], event["message"], event["type"], event["count"]) == ("Waits", "why", "Warning", 1)
    assert event["firstTimestamp"] == "2023-11-14T22:13:20Z"


async def test_repetitions_are_counted_and_written_now_and_then(clock: SettableClock) -> None:
    kube = FakeKube()
    recorder = EventRecorder(kube, "lamina", now=clock.wall)
    for _ in range(5):
        await recorder.record(PODS, POD, "Waits", "why")
    assert [event["count"] for event in await written(kube)] == [1]
    clock.time += 10
    await recorder.record(PODS, POD, "Waits", "why")
    (event,) = await written(kube)
    assert event["count"] == 6 and event["lastTimestamp"] > event["firstTimestamp"]
    await recorder.record(PODS, POD, "Waits", "another reason")
    assert len(await written(kube)) == 2


async def test_an_expired_event_is_written_again(clock: SettableClock) -> None:
    kube = FakeKube()
    recorder = EventRecorder(kube, "lamina", now=clock.wall)
    await recorder.record(PODS, POD, "Waits", "why")
    (event,) = await written(kube)
    await kube.delete(EVENTS, event["metadata"]["name"], namespace="team")
    clock.time += 10
    await recorder.record(PODS, POD, "Waits", "why")
    assert len(await written(kube)) == 1


async def test_an_event_of_an_earlier_run_is_counted_on(clock: SettableClock) -> None:
    kube = FakeKube()
    for _ in range(2):
        await EventRecorder(kube, "lamina", now=clock.wall).record(PODS, POD, "Waits", "why")
    assert [event["count"] for event in await written(kube)] == [2]


async def test_cluster_scoped_objects_have_events_in_default_and_long_texts_are_shortened(clock: SettableClock) -> None:
    kube = FakeKube()
    thing: Object = {"metadata": {"name": "n" * 253, "uid": "u"}}
    await EventRecorder(kube, "lamina", now=clock.wall).record(PODS, thing, "Is", "x" * 2000)
    (event,) = await written(kube)
    assert event["metadata"]["namespace"] == "default"
    assert len(event["metadata"]["name"]) <= 253 and len(event["message"]) == 1024


async def test_what_cannot_be_written_is_logged(clock: SettableClock, caplog: pytest.LogCaptureFixture) -> None:
    kube = FakeKube()
    kube.failing["create"] = lambda resource, name: Refused("events are forbidden")
    await EventRecorder(kube, "lamina", now=clock.wall).record(PODS, POD, "Waits", "why")
    assert "events are forbidden" in caplog.text
