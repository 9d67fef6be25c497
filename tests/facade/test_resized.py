"""A container is resized while its programs run: the new size counts for them, and they hold nothing over it."""

import asyncio

import pytest
from msgspec import structs

from lamina.enforcement import Limits, layout, live_limits, read_limits
from lamina.enforcement.live_limits import resize_container
from lamina.errors import NotYet
from tests.facade.conftest import CONTEXT, MIB, Container, MakeContainer
from tests.facade.python_programs import python
from tests.facade.running import beat, running

AHEAD_NS, OLD_NS = 10**8, 10**10


def resize(box: Container, mib: int) -> None:
    (device,) = read_limits(box.folder / "limits").devices
    resized = Limits(devices=(structs.replace(device, memory_bytes=mib * MIB),))
    asyncio.run(resize_container(box.folder, resized, None))


def test_a_running_program_gets_more_while_the_agent_lives(container: MakeContainer) -> None:
    box = container(1000)
    with running(box) as tell:
        assert (tell("take(600)"), tell("take(600)"), tell("total()")) == (0, 2, 1000)
        resize(box, 2000)
        beat(box, OLD_NS)
        assert (tell("take(600)"), tell("total()")) == (2, 1000)
        beat(box, -AHEAD_NS)
        assert (tell("take(600)"), tell("total()"), tell("free()[1]")) == (0, 2000, 2000 - 1200 - CONTEXT // MIB)
        assert tell("take(600)") == 2


def test_a_running_program_gets_less_whether_the_agent_lives_or_not(container: MakeContainer) -> None:
    box = container(2000)
    with running(box) as tell:
        assert tell("take(600)") == 0
        resize(box, 1000)
        for ago in (OLD_NS, -AHEAD_NS):
            beat(box, ago)
            assert (tell("take(200)"), tell("total()")) == (2, 1000)
        assert tell("take(50)") == 0


def test_a_program_that_starts_later_has_the_new_size(container: MakeContainer) -> None:
    box = container(2000)
    resize(box, 1000)
    assert python(box, "print(begin()[1], take(800), take(600))").stdout == "0 2 0\n"


def test_nothing_changes_while_more_is_held(container: MakeContainer) -> None:
    box = container(2000)
    before = read_limits(box.folder / "limits")
    with running(box) as tell:
        assert tell("take(900)") == 0
        with pytest.raises(NotYet, match=r"it holds 1203 MiB of GPU-.*, more than 1000 MiB"):
            resize(box, 1000)
        assert read_limits(box.folder / "limits") == before
        assert (tell("total()"), tell("take(700)")) == (2000, 0)


def test_a_program_that_allocates_meanwhile_keeps_the_old_size(
    container: MakeContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = container(2000)
    with running(box) as tell:
        checks = iter((lambda: None, lambda: tell("take(900)")))
        checked = live_limits._check_held

        async def allocates_first(folder, limits, ask):  # type: ignore[no-untyped-def]
            next(checks)()
            await checked(folder, limits, ask)

        tell("take(500)")
        monkeypatch.setattr(live_limits, "_check_held", allocates_first)
        resize(box, 1000)  # the second check comes when the new limit counts, so the allocation was refused
        assert tell("total()") == 1000


@pytest.mark.parametrize("word", [2**64 - 1, 1 << 50])
def test_words_of_an_agent_that_is_gone_give_nothing(container: MakeContainer, word: int) -> None:
    box = container(1000)
    with (box.folder / "arbiter").open("r+b") as file:
        file.seek(layout.ArbiterFile.devices.offset + layout.DecisionRecord.memory_bytes.offset)
        file.write(word.to_bytes(8, "little"))
    assert python(box, "print(begin()[1], take(800))").stdout == "0 2\n"
