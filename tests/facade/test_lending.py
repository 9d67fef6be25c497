"""A container with a guaranteed amount and a higher limit: what it borrows is managed memory, and the agent decides."""

import threading
from collections.abc import Iterator

import pytest

from lamina.enforcement import layout
from tests.facade.allocations import TOOLS
from tests.facade.conftest import CONTEXT, MIB, Container, MakeContainer
from tests.facade.python_programs import python
from tests.facade.running import WORK, beat, beating, running

CARD = 32494  # MiB of the V100 of 32 GB
CONTEXT_MIB = CONTEXT // MIB
FIXED = """
def physical(mib):
    handle, prop = ctypes.c_uint64(), (ctypes.c_uint32 * 8)(1, 0, 1, 0)
    return cuda.cuMemCreate(ctypes.byref(handle), ctypes.c_size_t(mib << 20), prop, ctypes.c_uint64(0))
"""


NEIGHBOR = """
import time
def timed(mib):
    began = time.monotonic()
    return take(mib) * 10000 + int((time.monotonic() - began) * 1000)
"""


def write_word(box: Container, field: str, value: int) -> None:
    with (box.folder / "arbiter").open("r+b") as file:
        file.seek(layout.ArbiterFile.lendings.offset + getattr(layout.LendingRecord, field).offset)
        file.write(value.to_bytes(8, "little"))


def lend(box: Container, allowed_mib: int) -> None:
    write_word(box, "allowed_bytes", allowed_mib * MIB)


@pytest.fixture
def box(container: MakeContainer) -> Iterator[Container]:
    """1000 MiB are guaranteed, 3000 the limit, all of it is allowed, and the agent lives."""
    made = container(3000, request=1000)
    lend(made, 3000)
    with beating(made):
        yield made


def test_without_an_agent_the_program_sees_the_limit_and_gets_the_request(container: MakeContainer) -> None:
    box = container(3000, request=1000)
    lend(box, 3000)
    with running(box) as tell:
        assert (tell("take(600)"), tell("take(600)")) == (0, 2)
        assert (tell("total()"), tell("free()[1]")) == (3000, 1000 - 600 - CONTEXT_MIB)


def test_what_is_borrowed_is_managed_memory(box: Container) -> None:
    script = (
        "assert (plain(500)[0], plain(1000)[0], pitched(500)[0], ordered(300)[0], plain(500)[0]) == (0, 0, 0, 0, 2)"
    )
    with box.waiting(TOOLS + script):
        device = box.usage().devices[0]
        assert (device.held, device.spilled) == (CONTEXT + 2300 * MIB, 1800 * MIB)
        assert box.really_held() == device.held


@pytest.mark.parametrize("take", ["plain(64)", "plain(1)", "pitched(64)", "ordered(64)"])
def test_plain_memory_never_exceeds_what_is_guaranteed(take: str, box: Container) -> None:
    with box.waiting(TOOLS + f"while {take}[0] == 0: pass"):
        device = box.usage().devices[0]
        assert device.held > 2900 * MIB
        assert device.held - device.spilled <= 1000 * MIB


def test_memory_that_cannot_be_managed_stays_within_what_is_guaranteed(box: Container) -> None:
    script = "print(physical(400), plain(1500)[0], physical(200), physical(200), plain(200)[0])"
    done = python(box, TOOLS + FIXED + script)
    assert done.stdout == "0 0 0 2 0\n", done.stderr
    assert "Device 0 OOM" in done.stderr and "of the guaranteed memory" in done.stderr


def test_a_part_is_kept_for_code_and_contexts_while_the_container_borrows(container: MakeContainer) -> None:
    box = container(3000, request=1000)
    script = TOOLS + FIXED + "print(plain(600)[0], plain(100)[0], physical(90))"
    assert python(box, script).stdout == "0 2 0\n"
    lend(box, 3000)
    with beating(box):
        assert python(box, script).stdout == "0 0 0\n"


def test_lending_follows_the_agent(box: Container) -> None:
    with running(box) as tell:
        assert tell("take(1500)") == 0
        lend(box, 1700)
        assert (tell("take(100)"), tell("free()[1]")) == (2, 0)
        lend(box, 2000)
        assert (tell("take(100)"), tell("free()[1]")) == (0, 2000 - 1600 - CONTEXT_MIB)
        lend(box, 0)
        assert tell("take(1)") == 2


def test_lending_ends_with_the_agent(container: MakeContainer) -> None:
    box = container(3000, request=1000)
    lend(box, 3000)
    with running(box) as tell:
        with beating(box):
            assert tell("take(1500)") == 0
        beat(box, 10**10)
        assert (tell("take(1)"), tell("free()[1]"), tell("total()")) == (2, 0, 3000)


def test_the_agent_cannot_lend_beyond_the_limit(box: Container) -> None:
    lend(box, 1 << 30)
    assert python(box, TOOLS + "print(plain(2600)[0], plain(200)[0])").stdout == "0 2\n"


def test_a_neighbor_gets_what_it_is_guaranteed_whatever_the_agent_does(container: MakeContainer) -> None:
    """The driver moves what was borrowed out of the way."""
    box = container(CARD, request=2000)
    lend(box, CARD)
    with running(box) as tell:
        with beating(box):
            assert tell("take(30000)") == 0
        with box.waiting(f"begin(); assert take({CARD} - 303 - 2000) == 0", outside=True):
            assert box.usage().devices[0].held == CONTEXT + 30000 * MIB


@pytest.mark.parametrize(("neighbors", "code", "least_ms"), [(0, 2, 0), (1, 2, 2000)])
def test_a_refused_call_is_repeated_for_a_bounded_time(
    neighbors: int, code: int, least_ms: int, container: MakeContainer
) -> None:
    """While neighbors have to return memory. Here it is plain memory, which no driver moves out."""
    box = container(2000)
    write_word(box, "neighbors_borrow", neighbors)
    with box.waiting(f"begin(); assert take({CARD} - 303 * 2) == 0", outside=True), running(box, NEIGHBOR) as tell:
        took = tell("timed(600)")
        assert took // 10000 == code
        assert took % 10000 >= least_ms


def test_a_refused_call_succeeds_as_soon_as_memory_is_returned(container: MakeContainer) -> None:
    box = container(2000)
    write_word(box, "neighbors_borrow", 1)
    script = f"begin(); assert take({CARD} - 303 * 2) == 0"
    with running(box, NEIGHBOR) as tell, box.waiting(script, outside=True) as other:
        threading.Timer(0.3, other.kill).start()
        took = tell("timed(600)")
        assert took // 10000 == 0
        assert 200 < took < 2000


def host(box: Container, mib: int) -> None:
    """The agent wants so much of what is borrowed on the host."""
    write_word(box, "host_bytes", mib * MIB)
    with (box.folder / "arbiter").open("r+b") as file:
        file.seek(layout.ArbiterFile.devices.offset + layout.DecisionRecord.attention.offset)
        file.write((1).to_bytes(8, "little"))


def hosted(box: Container) -> int:
    return box.usage().devices[0].hosted // MIB


def test_a_borrower_keeps_on_the_host_what_it_has_to_return(box: Container) -> None:
    with running(box, WORK) as tell:
        assert (tell("load()"), tell("take(600)"), tell("take(600)"), tell("take(601)"), tell("launch()")) == (0,) * 5
        before = box.really_held() // MIB
        for wanted, kept in ((300, 300), (301, 302), (900, 900), (400, 400), (100000, 1800), (0, 0)):
            host(box, wanted)
            assert tell("launch()") == 0
            assert (wanted, hosted(box)) == (wanted, kept)
            assert box.really_held() // MIB == before - kept


def test_what_is_freed_is_no_longer_kept_on_the_host(box: Container) -> None:
    with running(box, WORK) as tell:
        tell("load()")
        first, second, plain = tell("keep(700)"), tell("keep(800)"), tell("keep(500)")
        assert 0 not in (first, second, plain)
        host(box, 1000)
        tell("launch()")
        assert hosted(box) == 1000
        for at in (first, second):
            assert tell(f"drop({at})") == 0
        assert (hosted(box), box.usage().devices[0].spilled) == (0, 0 if tell(f"drop({plain})") == 0 else -1)


def test_an_old_word_moves_nothing(container: MakeContainer) -> None:
    box = container(3000, request=1000)
    lend(box, 3000)
    with running(box, WORK) as tell:
        with beating(box):
            assert (tell("load()"), tell("take(1500)")) == (0, 0)
        host(box, 500)
        beat(box, 10**10)
        assert tell("launch()") == 0
        assert hosted(box) == 0


def test_managed_memory_of_the_program_is_left_to_it(box: Container) -> None:
    managed = "cuda.cuMemAllocManaged(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(1500 << 20), 1)"
    with running(box, WORK) as tell:
        assert (tell("load()"), tell(managed)) == (0, 0)
        host(box, 500)
        assert (tell("launch()"), tell("launch()")) == (0, 0)
        assert hosted(box) == 0


def test_a_dead_process_keeps_nothing_on_the_host(box: Container) -> None:
    with running(box, WORK) as tell:
        assert (tell("load()"), tell("take(1500)")) == (0, 0)
        host(box, 500)
        tell("launch()")
        assert hosted(box) == 500
    python(box, "begin(); free()")
    assert hosted(box) == 0
