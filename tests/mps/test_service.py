"""The MPS service on its socket, as the agent asks it."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lamina.errors import BadInput, Outside
from lamina.mps.service import MpsService, run
from lamina.ports.mps import FakeMps, Hangs, Home, MpsServiceClient, MpsServiceDown
from tests.agent.mps import FIRST


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(FIRST, tmp_path / "mps")
    made.pipe.mkdir(parents=True)
    made.log.mkdir()
    return made


@contextlib.asynccontextmanager
async def served(folder: Path, daemons: FakeMps) -> AsyncIterator[MpsServiceClient]:
    async with MpsService(daemons).listening(folder / "sock"):
        yield MpsServiceClient(folder / "sock")


async def test_every_call_reaches_the_daemons(tmp_path: Path, home: Home) -> None:
    daemons = FakeMps()
    async with served(tmp_path, daemons) as client:
        await client.start(home)
        await client.ask(home, "set_default_active_thread_percentage 10")
        question = "get_default_active_thread_percentage\nget_default_device_pinned_mem_limit 0"
        assert await client.ask(home, question) == "10.0\n0G"
        await client.end(home)
    assert (daemons.started, daemons.ended, daemons.daemons) == ([FIRST], [FIRST], {})


async def test_failures_are_the_sentences_of_the_daemons(tmp_path: Path, home: Home) -> None:
    daemons = FakeMps()
    async with served(tmp_path, daemons) as client:
        with pytest.raises(Outside, match="does not answer: it is not there"):
            await client.ask(home, "quit")
        await client.start(home)
        daemons.daemons[FIRST].hangs = True
        with pytest.raises(Hangs, match="gives no answer within 5 s"):
            await client.ask(home, "quit")
        with pytest.raises(Outside, match="defect of the MPS service: one daemon at a time"):
            await client.start(home)
        await client.end(home)


async def test_only_the_user_of_the_service_can_ask_it(tmp_path: Path, home: Home) -> None:
    async with served(tmp_path, FakeMps()):
        assert (tmp_path / "sock").stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "sock").exists()


ODD = (
    b"",
    b"{",
    b"[]",
    b'{"call": "remove", "gpu": "GPU-1", "root": "/"}',
    b'{"call": "end", "gpu": "../x", "root": "/"}',
    b'{"call": "end", "gpu": "", "root": "/"}',
    b'{"call": "end", "gpu": "GPU-1", "root": "mps"}',
)


@pytest.mark.parametrize("line", ODD)
async def test_a_request_that_makes_no_sense_is_refused(line: bytes) -> None:
    daemons = FakeMps()
    reply = await MpsService(daemons).answer(line)
    assert reply.error.startswith("the MPS service ") and daemons.ended == []


async def test_fields_of_a_later_agent_are_ignored() -> None:
    daemons = FakeMps()
    line = b'{"call": "end", "gpu": "GPU-1", "root": "/mps", "later": 1}'
    assert (await MpsService(daemons).answer(line)).error == "" and daemons.ended == ["GPU-1"]


async def test_without_a_service_the_sentence_says_what_to_do(tmp_path: Path, home: Home) -> None:
    with pytest.raises(MpsServiceDown, match=r"does not listen at .*sock: No such file .*lamina mps.*agent\.mps=true"):
        await MpsServiceClient(tmp_path / "sock").end(home)


async def test_a_service_that_ends_or_hangs_is_a_failure_and_no_success(tmp_path: Path, home: Home) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_unix_server(hang_up, tmp_path / "ends"):
        with pytest.raises(MpsServiceDown, match="ended before it answered"):
            await MpsServiceClient(tmp_path / "ends").start(home)
    async with await asyncio.start_unix_server(hang, tmp_path / "hangs"):
        with pytest.raises(MpsServiceDown, match="gives no answer"):
            await MpsServiceClient(tmp_path / "hangs", reply_s=0.1).start(home)


async def test_a_socket_that_was_left_is_replaced_and_a_second_service_refused(tmp_path: Path, home: Home) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "sock"))
    async with served(tmp_path, FakeMps()) as client:
        with pytest.raises(BadInput, match=r"another MPS service listens at .*sock; run only one"):
            await run(tmp_path / "sock", FakeMps())
        await client.end(home)
