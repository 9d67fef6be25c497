"""The decorators of a `Kube`: what a slow and a lossy network do to each verb, and what they leave alone."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from lamina.ports.kube import PODS, Kube, NotFound, Object, Unreachable
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kube.fake_network import VERBS, LossyKube, SlowKube

POD: Object = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {}}
NEW: Object = {"metadata": {"name": "new", "namespace": "default"}, "spec": {}}
CALLS: dict[str, Callable[[Kube], Awaitable[object]]] = {
    "get": lambda kube: kube.get(PODS, "p", namespace="default"),
    "list": lambda kube: kube.list(PODS, labels="!x"),
    "create": lambda kube: kube.create(PODS, NEW),
    "replace": lambda kube: kube.replace(PODS, POD | {"spec": {"x": 1}}),
    "patch": lambda kube: kube.patch(PODS, "p", {"status": {"x": 1}}, namespace="default", subresource="status"),
    "delete": lambda kube: kube.delete(PODS, "p", namespace="default", uid="u", grace_s=0),
    "bind": lambda kube: kube.bind("p", namespace="default", uid="u", node="n"),
    "evict": lambda kube: kube.evict("p", namespace="default", uid="u"),
}
READS = ("get", "list")


async def server() -> FakeKube:
    fake = FakeKube()
    await fake.create(PODS, POD)
    return fake


def content(kube: FakeKube) -> list[Object]:
    """What the server keeps, without what differs from one server to the next."""
    return [
        obj | {"metadata": {name: obj["metadata"][name] for name in ("name", "generation")}} for _, obj in kube.stored()
    ]


def test_every_verb_is_tried_here() -> None:
    assert set(CALLS) == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
async def test_without_faults_a_call_does_and_answers_the_same(verb: str) -> None:
    plain, behind = await server(), await server()
    decorated: Kube = LossyKube(behind)
    expected, answer = await CALLS[verb](plain), await CALLS[verb](decorated)
    assert type(answer) is type(expected)
    assert content(behind) == content(plain)


@pytest.mark.parametrize("verb", VERBS)
async def test_a_lost_request_has_no_effect_and_is_lost_once(verb: str) -> None:
    fake = await server()
    kube, before = LossyKube(fake), content(fake)
    kube.faults.add((verb, "before"))
    with pytest.raises(Unreachable, match=f"lost before {verb}"):
        await CALLS[verb](kube)
    assert content(fake) == before and kube.faults == set()
    await CALLS[verb](kube)
    assert (content(fake) == before) == (verb in READS)


@pytest.mark.parametrize("verb", VERBS)
async def test_a_request_whose_answer_is_lost_has_taken_effect(verb: str) -> None:
    fake = await server()
    kube, before = LossyKube(fake), content(fake)
    kube.faults.add((verb, "after"))
    with pytest.raises(Unreachable, match=f"lost after {verb}"):
        await CALLS[verb](kube)
    assert (content(fake) == before) == (verb in READS) and kube.faults == set()


async def test_a_call_that_fails_has_no_answer_to_lose() -> None:
    kube = LossyKube(FakeKube())
    kube.faults.add(("get", "after"))
    with pytest.raises(NotFound):
        await kube.get(PODS, "p", namespace="default")
    assert kube.faults == {("get", "after")}


@pytest.mark.parametrize("verb", VERBS)
async def test_a_slow_request_arrives_late(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = await server()
    slept: list[tuple[float, int]] = []
    calls, sleep = len(fake.calls), asyncio.sleep

    async def noted(seconds: float) -> None:
        slept.append((seconds, len(fake.calls) - calls))
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    await CALLS[verb](SlowKube(fake, 0.25))
    assert [entry for entry in slept if entry[0] > 0] == [(0.25, 0)]


async def test_a_watch_is_neither_slow_nor_lost() -> None:
    kube = LossyKube(SlowKube(await server(), 3600.0))
    kube.faults.update(LossyKube.FAULTS)
    stream = kube.watch(PODS, "0")
    assert (await anext(stream)).object["metadata"]["name"] == "p"
    await kube.close()
    assert await anext(stream, None) is None
    assert kube.faults == set(LossyKube.FAULTS)
