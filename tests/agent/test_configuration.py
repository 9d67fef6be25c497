"""Where the agent's configuration comes from, and what counts as another one."""

import asyncio
import logging
from pathlib import Path

import pytest

from lamina.agent.node.configuration import FILE_POLL_S, ConfigurationSource
from lamina.configuration import DEFAULT, load
from lamina.errors import BadInput
from lamina.ports.clock import FakeClock
from lamina.ports.files import Files
from lamina.ports.kube import CONFIG_MAPS, Object
from lamina.ports.kube.fake import FakeKube
from lamina.ports.set_aside import SetAside
from tests.waiting import until

log = logging.getLogger(__name__)

SPLIT = "hami: {deviceSplitCount: 3}"


def config_map(text: str) -> Object:
    return {"metadata": {"name": "lamina", "namespace": "lamina-system"}, "data": {"lamina.yaml": text}}


@pytest.fixture
def last_good(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "lamina.yaml"


def source(
    kube: FakeKube,
    path: Path | None,
    last_good: Path,
    clock: FakeClock = FakeClock(),  # noqa: B008
) -> ConfigurationSource:
    return ConfigurationSource(kube, path, clock, last_good, Files(), SetAside(log))


async def test_a_file_goes_before_the_config_map_and_without_either_there_is_the_default(
    tmp_path: Path, last_good: Path
) -> None:
    kube = FakeKube()
    assert await source(kube, None, last_good).read() == DEFAULT
    await kube.create(CONFIG_MAPS, config_map(SPLIT))
    assert await source(kube, None, last_good).read() == load(SPLIT, "c")
    (tmp_path / "c").write_text("")
    assert await source(kube, tmp_path / "c", last_good).read() == DEFAULT


async def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path, last_good: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read the configuration .*absent"):
        await source(FakeKube(), tmp_path / "absent", last_good).read()
    (tmp_path / "odd").write_text("nonsense: 1")
    with pytest.raises(BadInput, match="odd: unknown key nonsense"):
        await source(FakeKube(), tmp_path / "odd", last_good).read()
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map("nonsense: 1"))
    with pytest.raises(BadInput, match=r"ConfigMap lamina-system/lamina, lamina\.yaml: unknown key nonsense"):
        await source(kube, None, last_good).read()


async def test_only_a_valid_text_with_another_meaning_is_another_configuration(last_good: Path) -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map(""))
    clock = FakeClock()
    waiting = asyncio.create_task(source(kube, None, last_good, clock).next_change(DEFAULT))
    for text in ("# the same", "nonsense: 1", "hami: {deviceSplitCount: 10}"):
        await kube.patch(CONFIG_MAPS, "lamina", config_map(text), namespace="lamina-system")
        await clock.advance(FILE_POLL_S)
        assert not waiting.done(), text
    await kube.delete(CONFIG_MAPS, "lamina", namespace="lamina-system")
    await clock.advance(FILE_POLL_S)
    assert not waiting.done(), "no one meant the default by removing it"
    await kube.create(CONFIG_MAPS, config_map(SPLIT))
    assert await asyncio.wait_for(waiting, 60) == load(SPLIT, "c")


async def test_a_file_is_looked_at_again_and_may_be_away_for_a_while(
    tmp_path: Path, last_good: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "c", FakeClock()
    waiting = asyncio.create_task(source(FakeKube(), path, last_good, clock).next_change(DEFAULT))
    await until(lambda: "Keeping the current configuration" in caplog.text)
    path.write_text(SPLIT)
    await clock.advance(FILE_POLL_S)
    assert await asyncio.wait_for(waiting, 60) == load(SPLIT, "c")


async def test_an_agent_that_starts_while_the_configuration_is_refused_works_by_the_last_one(last_good: Path) -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map(SPLIT))
    first = await source(kube, None, last_good).read()
    await kube.patch(CONFIG_MAPS, "lamina", config_map("nonsense: 1"), namespace="lamina-system")
    assert await source(kube, None, last_good).read() == first == load(SPLIT, "c")
    waiting = asyncio.create_task(source(kube, None, last_good).next_change(first))
    await kube.patch(CONFIG_MAPS, "lamina", config_map("hami: {deviceSplitCount: 4}"), namespace="lamina-system")
    second = await asyncio.wait_for(waiting, 60)
    await kube.patch(CONFIG_MAPS, "lamina", config_map("nonsense: 1"), namespace="lamina-system")
    assert await source(kube, None, last_good).read() == second == load("hami: {deviceSplitCount: 4}", "c")


async def test_a_stored_configuration_that_is_invalid_is_not_used(last_good: Path) -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map("nonsense: 1"))
    Files().write(last_good, b"of: a later release")
    with pytest.raises(BadInput, match="unknown key nonsense"):
        await source(kube, None, last_good).read()
