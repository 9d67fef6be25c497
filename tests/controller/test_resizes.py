"""Running pods are resized: nothing is promised twice, whatever the last step before a crash is."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from lamina.controller import resizer
from lamina.core.sizes import size_of
from lamina.errors import BadInput
from lamina.ledger.grant_objects import grant_record
from lamina.ledger.resize_requests import SizeRequest, read_requests
from lamina.ports.kube import GRANTS
from lamina.ports.kube.fake import FakeKube
from tests.controller.binders import Bench
from tests.controller.resizes import NODE, Resizing


@pytest.fixture
def world() -> Resizing:
    return Resizing(FakeKube())


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("main=8000", {"main": SizeRequest(8000, None)}),
        (" main = 8000 , 30 ", {"main": SizeRequest(8000, 30)}),
        ("main=,30;side=2", {"main": SizeRequest(None, 30), "side": SizeRequest(2, None)}),
    ],
)
def test_what_an_annotation_asks_for(written: str, expected: dict[str, SizeRequest]) -> None:
    assert {name.strip(): other_size for name, other_size in read_requests(written).items()} == expected


@pytest.mark.parametrize(
    "written",
    ["", "main", "main=", "main=,", "=5", "main=0", "main=5,101", "main=-1", "main=5;main=6", "main=1e3",
     "main=9" * 900, "main=99999999999", "main=٣", "a=1;" * 40, "main=5" + " " * 4000],
)  # fmt: skip
def test_what_no_annotation_can_ask_for(written: str) -> None:
    with pytest.raises(BadInput, match=r"annotation lamina\.dev/resize (must be|may name)"):
        read_requests(written)


async def test_more_counts_before_it_may_be_used_and_less_when_it_no_longer_is(world: Resizing) -> None:
    pod = await world.pod("a", 4000, 20)
    await world.ask(pod, "main=6000,30")
    await world.step()
    assert world.bench.memory() == 6000 and world.may_use[pod["metadata"]["uid"]] == (4000, 20)
    await world.rest()
    assert world.status(pod) == "done main=6000,30" and world.may_use[pod["metadata"]["uid"]] == (6000, 30)
    await world.ask(pod, "main=1000")
    await world.step()
    assert world.bench.memory() == 6000
    await world.rest()
    assert world.status(pod) == "done main=1000" and world.bench.memory() == 1000


async def test_room_that_an_attempt_left_without_a_turn_is_checked_again(world: Resizing) -> None:
    """One replica dies between writing larger shares and its turn, while another one binds a pod there."""
    pod = await world.pod("a", 4000)
    other = Bench(world.kube, clock=world.clock, name="other")
    other.offer(NODE, *world.gpus)
    await other.bind(await other.pod("small", gpumem=100), NODE)
    await world.ask(pod, "main=7000")
    assert await world.step(die_at=1)
    (shares,) = [grant_record(obj).grant for obj in world.objects(GRANTS) if obj["spec"]["pod"] == "a"]
    assert shares.containers[0].shares[0].memory_mib == 7000
    assert await other.bind(await other.pod("b", gpumem=4000), NODE) == ""
    world.observe()
    await world.rest()
    world.check()
    assert world.status(pod).startswith("refused main=7000: GPU GPU-0")
    assert world.bench.memory() == 8100


async def test_a_size_below_what_programs_hold_is_refused_and_the_old_one_stays(world: Resizing) -> None:
    pod = await world.pod("a", 4000, 20)
    uid = pod["metadata"]["uid"]
    world.used[uid] = 3000
    await world.ask(pod, "main=2000,50")
    await world.rest()
    assert world.status(pod) == "refused main=2000,50: it holds 3000 MiB, more than 2000 MiB"
    assert world.bench.memory() == 4000 and world.may_use[uid] == (4000, 20)
    world.used[uid] = 0
    await world.rest()
    assert world.may_use[uid] == (4000, 20), "a refused size is not tried again"
    await world.ask(pod, "main=2000,50")
    await world.rest()
    assert world.status(pod) == "done main=2000,50" and world.may_use[uid] == (2000, 50)


async def test_a_request_that_is_taken_back_while_it_waits_leaves_the_old_size(world: Resizing) -> None:
    pod = await world.pod("a", 4000)
    world.used[pod["metadata"]["uid"]] = 3000
    await world.ask(pod, "main=2000", when_held="wait")
    await world.rest(3)
    await world.ask(pod, "")
    world.used[pod["metadata"]["uid"]] = 0
    await world.rest()
    assert world.bench.memory() in (2000, 4000)
    world.check()


async def test_the_annotation_of_shares_follows_the_size(world: Resizing) -> None:
    pod = await world.pod("a", 4000, 20)
    for other_size, expected in (("main=6000,30", "GPU-0,NVIDIA,6000,30:;"), ("main=1000", "GPU-0,NVIDIA,1000,30:;")):
        await world.ask(pod, other_size)
        await world.step()
        assert not world.annotation(pod, "hami.io/vgpu-devices-allocated").startswith(expected)
        await world.rest()
        assert world.annotation(pod, "hami.io/vgpu-devices-allocated") == expected
        assert world.annotation(pod, "hami.io/vgpu-devices-to-allocate") == expected


async def test_what_programs_hold_is_not_taken_from_them(world: Resizing) -> None:
    pod = await world.pod("a", 4000)
    world.used[pod["metadata"]["uid"]] = 3000
    await world.ask(pod, "main=2000", when_held="wait")
    await world.rest()
    assert world.status(pod) == "waiting main=2000: it holds 3000 MiB, more than 2000 MiB"
    assert world.bench.memory() == 4000
    await world.ask(pod, "main=3500")  # another request takes the place of one that waits
    await world.rest()
    assert (world.status(pod), world.bench.memory()) == ("done main=3500", 3500)


@pytest.mark.parametrize(
    ("other_size", "why"),
    [
        ("main=7000", "GPU GPU-0 of node node-0: no free memory on the GPU: the pod requests 7000 MiB"),
        ("main=99999", "GPU GPU-0 of node node-0:"),
        ("main=,90", "GPU GPU-0 of node node-0:"),
        ("side=1000", "container 'side' has no share of a GPU; it has to be one of main"),
        ("main=much", "annotation lamina.dev/resize must be container=MiB,percent"),
    ],
)
async def test_what_cannot_be_is_refused_in_a_sentence(world: Resizing, other_size: str, why: str) -> None:
    pod = await world.pod("a", 4000, 20)
    await world.pod("b", 4000, 20)
    await world.ask(pod, other_size)
    await world.rest(3)
    state, _, sentence = world.status(pod).partition(f" {other_size}: ")
    assert state == "refused" and sentence.startswith(why.partition(": no free")[0]), world.status(pod)
    assert world.bench.memory() == 8000


async def test_a_quota_counts_for_a_resize_too(world: Resizing) -> None:
    hard = {"limits.nvidia.com/gpumem": "5000"}
    world.bench.quotas.observe({"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}})
    pod = await world.pod("a", 4000)
    await world.ask(pod, "main=6000")
    await world.rest(3)
    assert world.status(pod).startswith("refused main=6000: quota q allows 5000"), world.status(pod)


async def test_a_late_report_of_a_smaller_grant_changes_nothing(world: Resizing) -> None:
    pod = await world.pod("a", 4000)
    (before,) = [grant_record(obj) for obj in world.objects(GRANTS)]
    await world.ask(pod, "main=6000")
    await world.rest()
    world.bench.ledger.observe_grant(before)
    assert world.bench.memory() == 6000


STEPS = [("main=7000,40", 3000), ("main=2000,10", 3000), ("main=2000,10", 0), ("main=5000", 0)]
"""What the first pod asks for, and what its programs hold then."""


async def course(world: Resizing, die_at: int = -1, at_step: int = 0, when_held: str = "wait") -> bool:
    """Pod `a` is resized again and again, while others of 3000 MiB come whenever there is room. The controller may die
    in one of these steps. Returns whether it did."""
    pod = await world.pod("a", 4000, 20)
    died, others = False, itertools.count()
    for number, (other_size, held) in enumerate(STEPS):
        world.used[pod["metadata"]["uid"]] = held
        await world.ask(pod, other_size, when_held=when_held)
        for turn in range(6):
            before = _sizes(world)
            died |= await world.step(die_at if number == at_step and turn == 0 else -1)
            for uid, size in _sizes(world).items():
                assert size in (before[uid], _wanted(other_size, before[uid]), world.may_use[uid]), (
                    other_size,
                    uid,
                    size,
                )
            await world.pod(f"b{next(others)}", 3000, 10)
            world.check()
        if number in (0, 3):
            state = world.status(pod).partition(" ")[0]
            assert state in ("done", "refused"), world.status(pod)
    return died


def _sizes(world: Resizing) -> dict[str, tuple[int, int]]:
    grants = [grant_record(obj).grant for obj in world.objects(GRANTS)]
    sizes = {grant.pod_uid: size_of(grant.containers[0]) for grant in grants}
    return {uid: (size.memory_mib, size.cores) for uid, size in sizes.items()}


def _wanted(other_size: str, before: tuple[int, int]) -> tuple[int, int]:
    asked = read_requests(other_size)["main"]
    return (asked.memory_mib or before[0], asked.cores or before[1])


@pytest.mark.parametrize("when_held", ["refuse", "wait"])
@pytest.mark.parametrize("at_step", range(len(STEPS)))
async def test_a_crash_at_any_write_leaves_the_old_or_the_new_size(at_step: int, when_held: str) -> None:
    for die_at in itertools.count():
        if not await course(Resizing(FakeKube()), die_at, at_step, when_held):
            assert die_at >= 2
            return


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield lambda name, mutant: monkeypatch.setattr(resizer, name, mutant)


async def test_a_size_without_room_for_it_does_not_get_through(planted: Any) -> None:
    planted("raised", lambda container, size: container)
    with pytest.raises(AssertionError):
        await course(Resizing(FakeKube()))


async def test_room_that_is_given_away_too_early_does_not_get_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resizer.Resizer, "_unapplied", lambda self, record: "")
    with pytest.raises(AssertionError):
        await course(Resizing(FakeKube()))


async def test_a_ledger_that_believes_late_reports_does_not_get_through(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Resizing(FakeKube())
    pod = await world.pod("a", 4000)
    (before,) = [grant_record(obj) for obj in world.objects(GRANTS)]
    await world.ask(pod, "main=6000")
    await world.rest()
    world.bench.ledger.observe_grant(before._replace(grant=structs.replace(before.grant, revision=9)))
    with pytest.raises(AssertionError):
        world.check()


async def test_pods_whose_sizes_change_all_the_time_delay_no_other(world: Resizing) -> None:
    """A namespace has a bounded number of changes in a call, and who was changed longest ago comes first."""
    restless = [await world.pod(f"restless-{number}", 500) for number in range(6)]
    honest = await world.pod("the-honest-one", 500)
    for turn in range(6):
        for pod in restless:
            await world.ask(pod, f"main={600 + turn}")
        before = dict(world.may_use)
        if turn == 5:
            await world.ask(honest, "main=700")
        world.clock.time += 1
        await world.step()
        await world.agent()
        assert sum(world.may_use[uid] != size for uid, size in before.items()) == resizer.MAX_CHANGES
    assert world.may_use[honest["metadata"]["uid"]] == (700, 0)
    for _ in range(6):
        world.clock.time += 1
        await world.step()
        await world.agent()
    assert {world.status(pod) for pod in restless} == {"done main=605"}, "each of them has its turn"
