"""What any pod can send to the admission port: each request is bounded, and the others are answered meanwhile."""

import asyncio

import msgspec
import pytest

from lamina.admission import service
from lamina.admission.review import Demand
from lamina.admission.service import LARGE_BODY, MAX_BODY, MAX_LARGE_BODIES, MAX_VALUES
from tests.controller.admission_worker import RawClient, Worked, review_of, working
from tests.waiting import until
from tests.worlds.objects import gpu_pod
from tests.worlds.planted import planted

PLAIN = review_of(gpu_pod())
LARGE = PLAIN + b" " * LARGE_BODY


async def test_a_body_that_is_too_large_is_refused_unread() -> None:
    async with working() as worked:
        client = await worked.client()
        client.head(MAX_BODY + 1)
        status, text = await client.answer()
        assert status == 413 and b"at most 6291456 are read" in text
        assert await client.ended() == b""


async def test_a_body_of_unknown_length_is_refused() -> None:
    async with working() as worked:
        client = await worked.client()
        client.writer.write(b"POST /mutate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert await client.status() == 411


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"request":{"object":{"a":[' + b"{}," * (MAX_VALUES // 2) + b"{}]}}}", b"at most 200000 are read"),
        (b'{"request":{"object":{"a":' + b"[" * 100_000, b"not an AdmissionReview"),
        (b'{"request":{"object":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}}", b"not an AdmissionReview"),
        (b"{}", b"not an AdmissionReview"),
    ],
)
async def test_a_body_that_no_api_server_sends_is_refused(
    body: bytes, words: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = []
    monkeypatch.setattr(service, "review", decoded.append)
    async with working() as worked:
        client = await worked.client()
        client.post(body)
        status, text = await client.answer()
        assert status == 400 and words in text and decoded == []


async def test_a_body_that_does_not_arrive_is_given_up() -> None:
    async with working() as worked:
        clients = [await worked.client() for _ in range(8)]
        for size, client in enumerate(clients, start=1):
            client.head(MAX_BODY // size)
            client.writer.write(b" " * 1000)
        statuses = asyncio.gather(*(client.status() for client in clients))
        await until(statuses.done, clock=worked.clock, step_s=1.0)
        assert await statuses == [408] * len(clients)
        await asyncio.gather(*(client.ended() for client in clients))


async def half_sent(worked: Worked) -> RawClient:
    """A connection whose large body is being read, and has not arrived."""
    client = await worked.client()
    client.head(len(LARGE), "Expect: 100-continue")
    assert await client.status() == 100
    return client


async def test_few_large_bodies_are_in_memory_and_small_ones_do_not_wait() -> None:
    async with working() as worked:
        first, *_ = [await half_sent(worked) for _ in range(MAX_LARGE_BODIES)]
        waiting = await half_sent(worked)
        waiting.writer.write(LARGE)
        answered = asyncio.create_task(waiting.status())
        small = await worked.client()
        small.post(PLAIN)
        assert await small.status() == 200
        assert not answered.done()
        first.writer.write(LARGE)
        assert await first.status() == 200 and await answered == 200


@pytest.mark.parametrize("refusal", ["", "there is no room"])
async def test_the_cluster_decides_about_what_it_must_have(refusal: str) -> None:
    demands: list[Demand] = []

    def ask(demand: Demand) -> str:
        demands.append(demand)
        return refusal

    async with working(ask=ask) as worked:
        client = await worked.client()
        client.post(review_of(gpu_pod(gpu=2, gpumem=1000)))
        status, body = await client.answer()
        assert demands == [Demand()], "it does not depend on the namespace"
        assert worked.reviewed == [not refusal]
        response = msgspec.json.decode(body)["response"]
        assert (status, response["allowed"]) == (200, not refusal)
        assert response.get("status", {}).get("message", "") == refusal


async def test_a_defect_follows_the_policy_of_the_webhook(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Which is to fail closed for pods and open for others, where the answer is an error."""

    monkeypatch.setattr(service, "review", planted)
    async with working() as worked:
        client = await worked.client()
        for _ in range(3):
            client.post(PLAIN)
            assert await client.answer() == (
                500,
                b"Lamina could not answer admit because of a defect (Planted); its log has more",
            )
    assert len([record for record in caplog.records if record.exc_info]) == 1


async def test_what_has_been_read_is_answered_before_the_end() -> None:
    running: list[Worked] = []

    def ask(demand: Demand) -> str:
        running[0].task.cancel()
        return ""

    async with working(ask=ask) as worked:
        running.append(worked)
        client = await worked.client()
        client.post(review_of(gpu_pod(gpu=1)))
        assert await client.status() == 200
