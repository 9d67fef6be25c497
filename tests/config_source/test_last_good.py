"""The configuration of a program that goes on with the last accepted one, and what counts as another one."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lamina.config_source.last_good import read_or_last_good
from lamina.config_source.live import LiveConfiguration, follow_source
from lamina.configuration import DEFAULT, Config, load
from lamina.errors import BadInput
from lamina.ports.clock import FakeClock
from lamina.ports.files import Files
from lamina.ports.kube import CONFIG_MAPS
from lamina.ports.kube.fake import FakeKube
from lamina.ports.set_aside import SetAside
from tests.waiting import canceled, until
from tests.worlds.objects import config_map

log = logging.getLogger(__name__)

SPLIT = "hami: {deviceSplitCount: 3}"
OTHER = "hami: {deviceSplitCount: 4}"
POLL_S = 2.0


async def patched(kube: FakeKube, text: str) -> None:
    await kube.patch(CONFIG_MAPS, "lamina", config_map(text), namespace="lamina-system")


@pytest.fixture
def last_good(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "lamina.yaml"


async def read(kube: FakeKube, path: Path | None, last_good: Path) -> LiveConfiguration:
    return await read_or_last_good(path, kube, last_good, Files(), SetAside(log))


@asynccontextmanager
async def followed(
    kube: FakeKube, path: Path | None, last_good: Path, clock: FakeClock
) -> AsyncIterator[tuple[LiveConfiguration, list[Config]]]:
    """The configuration, and all that came into force after it."""
    configuration, changes = await read(kube, path, last_good), list[Config]()
    configuration.listeners.append(lambda: changes.append(configuration.value))
    task = asyncio.create_task(follow_source(path, kube, clock, configuration, None, SetAside(log)))
    yield configuration, changes
    await canceled(task)


async def test_a_file_goes_before_the_config_map_and_without_either_there_is_the_default(
    tmp_path: Path, last_good: Path
) -> None:
    kube = FakeKube()
    assert (await read(kube, None, last_good)).value == DEFAULT
    await kube.create(CONFIG_MAPS, config_map(SPLIT))
    assert (await read(kube, None, last_good)).value == load(SPLIT, "c")
    (tmp_path / "c").write_text("")
    assert (await read(kube, tmp_path / "c", last_good)).value == DEFAULT


async def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path, last_good: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read the configuration .*absent"):
        await read(FakeKube(), tmp_path / "absent", last_good)
    (tmp_path / "odd").write_text("nonsense: 1")
    with pytest.raises(BadInput, match="odd: unknown key nonsense"):
        await read(FakeKube(), tmp_path / "odd", last_good)
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map("nonsense: 1"))
    with pytest.raises(BadInput, match=r"ConfigMap lamina-system/lamina, lamina\.yaml: unknown key nonsense"):
        await read(kube, None, last_good)


async def test_only_a_valid_text_with_another_meaning_is_another_configuration(last_good: Path) -> None:
    kube, clock = FakeKube(), FakeClock()
    await kube.create(CONFIG_MAPS, config_map(""))
    async with followed(kube, None, last_good, clock) as (configuration, changes):
        for text in ("# the same", "nonsense: 1", "hami: {deviceSplitCount: 10}"):
            await patched(kube, text)
            await clock.advance(POLL_S)
            assert not changes, text
        await kube.delete(CONFIG_MAPS, "lamina", namespace="lamina-system")
        await clock.advance(POLL_S)
        assert not changes, "no one meant the default by removing it"
        await kube.create(CONFIG_MAPS, config_map(SPLIT))
        await until(lambda: bool(changes))
        assert changes == [configuration.value] == [load(SPLIT, "c")]


async def test_a_file_is_looked_at_again_and_may_be_away_for_a_while(
    tmp_path: Path, last_good: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "c", FakeClock()
    path.write_text("")
    async with followed(FakeKube(), path, last_good, clock) as (_, changes):
        path.unlink()
        await clock.advance(POLL_S)
        await until(lambda: "The configuration is unchanged" in caplog.text)
        path.write_text(SPLIT)
        await clock.advance(POLL_S)
        await until(lambda: changes == [load(SPLIT, "c")])


async def test_a_program_that_starts_while_the_configuration_is_refused_works_by_the_last_one(
    last_good: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map(SPLIT))
    first = (await read(kube, None, last_good)).value
    await patched(kube, "nonsense: 1")
    async with followed(kube, None, last_good, FakeClock()) as (configuration, changes):
        assert configuration.value == first == load(SPLIT, "c")
        assert "Refused the configuration; the last accepted one stays in force" in caplog.text
        await patched(kube, OTHER)
        await until(lambda: changes == [load(OTHER, "c")])
        await patched(kube, "nonsense: 1")
    assert (await read(kube, None, last_good)).value == load(OTHER, "c")


async def test_a_stored_configuration_that_is_invalid_is_not_used(last_good: Path) -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map("nonsense: 1"))
    Files().write(last_good, b"of: a later release")
    with pytest.raises(BadInput, match="unknown key nonsense"):
        await read(kube, None, last_good)


async def test_a_disk_that_refuses_has_no_other_effect(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("not a folder")
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map(SPLIT))
    assert (await read(kube, None, tmp_path / "kept" / "lamina.yaml")).value == load(SPLIT, "c")
