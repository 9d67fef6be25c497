"""Who may read metrics: what the API server is asked, what is remembered, and what is bounded."""

import asyncio

import pytest

from lamina.ports.caller_reviews import KEPT_S, MAX_KEPT, MAX_WAITING, CallerReviews
from lamina.ports.clock import FakeClock
from lamina.ports.kube import SUBJECT_ACCESS_REVIEWS, Unreachable
from tests.worlds.reviews import GROUPS, ReviewingKube


@pytest.fixture
def kube() -> ReviewingKube:
    """Knows tokens that begin with "known", and allows users whose names do not end with "else"."""
    return ReviewingKube(lambda token: token.startswith("known"), lambda asked: not asked["user"].endswith("else"))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def reviews(kube: ReviewingKube, clock: FakeClock) -> CallerReviews:
    return CallerReviews(kube, clock)


async def test_a_caller_is_allowed_as_the_api_server_says(kube: ReviewingKube, reviews: CallerReviews) -> None:
    assert (await reviews.verdict("Bearer known", "10.0.0.1")).status == 200
    (_, token), (kind, access) = kube.asked
    assert token == {"token": "known"}
    assert kind == SUBJECT_ACCESS_REVIEWS
    assert access["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
    assert (access["user"], access["groups"], access["uid"]) == ("known", GROUPS, "uid-of-known")


@pytest.mark.parametrize(
    ("header", "status"),
    [("", 401), ("Bearer", 401), ("Bearer  ", 401), ("Basic known", 401), ("Bearer strange", 401),
     ("Bearer known-else", 403), ("bearer known", 200)],
)  # fmt: skip
async def test_others_are_refused(reviews: CallerReviews, header: str, status: int) -> None:
    assert (await reviews.verdict(header, "10.0.0.1")).status == status


async def test_who_sends_no_token_costs_no_request(kube: ReviewingKube, reviews: CallerReviews) -> None:
    await reviews.verdict("", "10.0.0.1")
    await reviews.verdict("Basic abc", "10.0.0.1")
    assert kube.asked == []


async def test_who_is_allowed_is_remembered_for_a_while(
    kube: ReviewingKube, clock: FakeClock, reviews: CallerReviews
) -> None:
    for _ in range(3):
        assert (await reviews.verdict("Bearer known", "10.0.0.1")).status == 200
    assert len(kube.asked) == 2
    await clock.advance(KEPT_S)
    await reviews.verdict("Bearer known", "10.0.0.1")
    assert len(kube.asked) == 4


async def test_who_is_refused_pushes_nobody_out(kube: ReviewingKube, reviews: CallerReviews) -> None:
    await reviews.verdict("Bearer known", "10.0.0.1")
    for number in range(2 * MAX_KEPT):
        assert (await reviews.verdict(f"Bearer strange-{number}", "10.0.0.1")).status == 401
    before = len(kube.asked)
    assert (await reviews.verdict("Bearer known", "10.0.0.1")).status == 200
    assert len(kube.asked) == before


async def test_a_bounded_number_is_remembered(kube: ReviewingKube, reviews: CallerReviews) -> None:
    for number in range(MAX_KEPT + 1):
        await reviews.verdict(f"Bearer known-{number}", "10.0.0.1")
    before = len(kube.asked)
    await reviews.verdict("Bearer known-0", "10.0.0.1")
    assert len(kube.asked) == before + 2


async def test_nobody_is_allowed_while_the_api_server_does_not_answer(
    kube: ReviewingKube, reviews: CallerReviews
) -> None:
    kube.failure = Unreachable("it is away")
    assert (await reviews.verdict("Bearer known", "10.0.0.1")).status == 503
    kube.failure = None
    assert (await reviews.verdict("Bearer known", "10.0.0.1")).status == 200


async def test_a_bounded_number_waits(kube: ReviewingKube, reviews: CallerReviews) -> None:
    kube.answers.clear()
    waiting = [
        asyncio.create_task(reviews.verdict(f"Bearer known-{number}", "10.0.0.1")) for number in range(MAX_WAITING)
    ]
    await asyncio.sleep(0)
    assert (await reviews.verdict("Bearer known-more", "10.0.0.1")).status == 429
    assert len(kube.asked) == 2
    kube.answers.set()
    assert {each.status for each in await asyncio.gather(*waiting)} == {200}


async def test_strangers_keep_neither_known_nor_new_callers_out(
    kube: ReviewingKube, clock: FakeClock, reviews: CallerReviews
) -> None:
    assert (await reviews.verdict("Bearer known", "10.0.0.1")).status == 200
    await clock.advance(KEPT_S)
    kube.answers.clear()
    flood = [asyncio.create_task(reviews.verdict(f"Bearer strange-{n}", "10.0.0.66")) for n in range(200)]
    await asyncio.sleep(0)
    honest = [asyncio.create_task(reviews.verdict("Bearer known", "10.0.0.1")) for _ in range(5)]
    honest += [asyncio.create_task(reviews.verdict("Bearer known-2", "10.0.0.2"))]
    await asyncio.sleep(0)
    kube.answers.set()
    assert [each.status for each in await asyncio.gather(*honest)] == [200] * 6
    assert {each.status for each in await asyncio.gather(*flood)} == {401, 429}
    assert sum(spec.get("token") == "known" for _, spec in kube.asked) <= 3, "those who waited are not checked again"


async def test_a_caller_that_is_not_allowed_any_more_is_a_stranger(
    kube: ReviewingKube, clock: FakeClock, reviews: CallerReviews
) -> None:
    assert (await reviews.verdict("Bearer known", "10.0.0.1")).status == 200
    await clock.advance(KEPT_S)
    kube.failure = Unreachable("it is away")
    assert (await reviews.verdict("Bearer known", "10.0.0.1")).status == 503
    assert reviews._until, "no answer is no refusal"


@pytest.mark.parametrize(
    "token",
    ["a b", "ä", "x" * 20000, "a\x00b", "(", "eyJ", "eyJhbGciOi.e30", "eyJhbGciOi.bm8.c2ln", "eyJhbGciOi.!.c2ln",
     "eyJhbGciOi.WzFd.c2ln", "eyJ.e30.c2ln.more", "=", "a=b"],
)  # fmt: skip
async def test_what_cannot_be_a_token_costs_no_request(kube: ReviewingKube, reviews: CallerReviews, token: str) -> None:
    assert (await reviews.verdict(f"Bearer {token}", "10.0.0.1")).status == 401
    assert kube.asked == []


@pytest.mark.parametrize(
    "token", ["eyJhbGciOi.eyJhIjoxfQ.c2ln", "sha256~Ab-c_1", "k8s-aws-v1.aHR0", "abc==", "id:secret"]
)
async def test_what_api_servers_take_as_tokens_is_asked_about(
    kube: ReviewingKube, reviews: CallerReviews, token: str
) -> None:
    assert (await reviews.verdict(f"Bearer {token}", "10.0.0.1")).status == 401
    assert [spec["token"] for _, spec in kube.asked] == [token]
