"""The words spoken with an extender, and every way in which it can fail."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from lamina_lab.scheduler.extender import Extender, ExtenderDown, ExtenderError, ManagedResource
from tests.lab_scheduler.extenders import GPU, FakeExtender

POD: dict[str, Any] = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {}}
NODES: list[dict[str, Any]] = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]


@pytest.fixture
async def server() -> AsyncIterator[FakeExtender]:
    made = FakeExtender()
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def extender(server: FakeExtender) -> AsyncIterator[Extender]:
    made = Extender(server.config(weight=3))
    yield made
    await made.close()


async def test_the_three_calls(server: FakeExtender, extender: Extender) -> None:
    server.rule = lambda pod, node: "too small" if node == "b" else ""
    server.scores = {"a": 4}
    filtered = await extender.filter(POD, NODES, 0)
    assert (filtered.nodes, dict(filtered.failed)) == (("a",), {"b": "too small"})
    assert await extender.prioritize(POD, NODES, 0) == {"a": 12.0, "b": 0.0}
    await extender.bind(POD, "a", 0)
    arguments = {"Pod": POD, "Nodes": None, "NodeNames": ["a", "b"]}
    bind = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "a"}
    assert server.calls == [("filter", arguments), ("prioritize", arguments), ("bind", bind)]


@pytest.mark.parametrize(
    "answer",
    [
        {"NodeNames": ["a"], "FailedNodes": {"b": "why"}},
        {"nodeNames": ["a"], "failedNodes": {"b": "why"}},
        {"nodenames": ["a"], "failedAndUnresolvableNodes": {"b": "why"}},
        {"nodes": {"items": [{"metadata": {"name": "a"}}]}, "failedNodes": {"b": "why"}},
        {"NodeNames": ["a"], "FailedNodes": {"b": "perhaps"}, "FailedAndUnresolvableNodes": {"b": "why"}},
    ],
)
async def test_answers_are_read_whatever_the_case_of_their_names(
    server: FakeExtender, extender: Extender, answer: dict[str, Any]
) -> None:
    server.failing["filter"] = answer
    filtered = await extender.filter(POD, NODES, 0)
    assert (filtered.nodes, dict(filtered.failed)) == (("a",), {"b": "why"})


@pytest.mark.parametrize(
    ("answer", "status", "why"),
    [
        ({"Error": "no ledger yet"}, 200, "no ledger yet"),
        ({"error": "no ledger yet"}, 200, "no ledger yet"),
        ({"nodenames": ["c"]}, 200, "'c'"),
        ({"nodenames": ["a"]}, 503, "answered 503"),
    ],
)
async def test_a_filter_that_fails(
    server: FakeExtender, extender: Extender, answer: dict[str, Any], status: int, why: str
) -> None:
    server.failing["filter"], server.status["filter"] = answer, status
    with pytest.raises(ExtenderError, match=why) as raised:
        await extender.filter(POD, NODES, 0)
    if "error" in {key.lower() for key in answer}:
        assert str(raised.value) == why, "kube-scheduler shows the extender's error alone"


async def test_no_answer_means_no_node(server: FakeExtender, extender: Extender) -> None:
    server.failing["filter"] = {}
    assert (await extender.filter(POD, NODES, 0)).nodes == ()


async def test_an_extender_without_an_opinion_does_not_stop_a_pod(server: FakeExtender, extender: Extender) -> None:
    server.status["prioritize"] = 500
    assert await extender.prioritize(POD, NODES, 0) == {}


async def test_a_bind_that_is_refused(server: FakeExtender, extender: Extender) -> None:
    server.failing["bind"] = {"Error": "taken"}
    with pytest.raises(ExtenderError, match=r"^taken$"):
        await extender.bind(POD, "a", 0)


async def test_after_a_timeout_the_extender_is_not_called_for_a_second(
    server: FakeExtender, extender: Extender
) -> None:
    port = server.port
    await server.stop()
    with pytest.raises(ExtenderDown, match="is not responding"):
        await extender.filter(POD, NODES, 0.0)
    await server.start(port)
    with pytest.raises(ExtenderDown):
        await extender.filter(POD, NODES, 0.9)
    assert server.calls == []
    assert (await extender.filter(POD, NODES, 1.1)).nodes == ("a", "b")


async def test_verbs_that_are_not_there_are_not_called(server: FakeExtender) -> None:
    extender = Extender(server.config(filter_verb="", prioritize_verb=""))
    assert (await extender.filter(POD, NODES, 0)).nodes == ("a", "b")
    assert await extender.prioritize(POD, NODES, 0) == {}
    assert server.calls == []
    await extender.close()


async def test_who_is_of_interest(server: FakeExtender) -> None:
    asking = {"spec": {"containers": [{"resources": {"limits": {GPU: "1"}}}]}}
    cases = (((ManagedResource(GPU),), [True, False]), ((ManagedResource("x/y"),), [False, False]), ((), [True, True]))
    for managed, expected in cases:
        extender = Extender(server.config(managed=managed))
        assert [extender.is_interested(asking), extender.is_interested(POD)] == expected
        await extender.close()
