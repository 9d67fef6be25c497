"""Where the agent's configuration comes from, and what counts as another one."""

import asyncio
from pathlib import Path

import pytest

from lamina.agent.configuration import FILE_EVERY_S, Kept, another, read
from lamina.dialects.config import DEFAULT, load
from lamina.errors import BadInput
from lamina.ports.clock import FakeClock
from lamina.ports.files import Files
from lamina.ports.kube import CONFIG_MAPS, Object
from lamina.ports.kube.fake import FakeKube

SPLIT = "hami: {deviceSplitCount: 3}"


def config_map(text: str) -> Object:
    return {"metadata": {"name": "lamina", "namespace": "lamina-system"}, "data": {"lamina.yaml": text}}


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "kept" / "lamina.yaml", Files())


async def test_a_file_goes_before_the_config_map_and_without_either_there_is_the_default(
    tmp_path: Path, kept: Kept
) -> None:
    kube = FakeKube()
    assert await read(kube, None, kept) == DEFAULT
    await kube.create(CONFIG_MAPS, config_map(SPLIT))
    assert await read(kube, None, kept) == load(SPLIT, "c")
    (tmp_path / "c").write_text("")
    assert await read(kube, tmp_path / "c", kept) == DEFAULT


async def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path, kept: Kept) -> None:
    with pytest.raises(BadInput, match="absent cannot be read"):
        await read(FakeKube(), tmp_path / "absent", kept)
    (tmp_path / "odd").write_text("nonsense: 1")
    with pytest.raises(BadInput, match="odd: unknown key nonsense"):
        await read(FakeKube(), tmp_path / "odd", kept)
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map("nonsense: 1"))
    with pytest.raises(BadInput, match=r"ConfigMap lamina-system/lamina, lamina\.yaml: unknown key nonsense"):
        await read(kube, None, kept)


async def test_only_a_valid_text_with_another_meaning_is_another_configuration(kept: Kept) -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map(""))
    waiting = asyncio.create_task(another(kube, None, DEFAULT, FakeClock(), kept))
    for text in ("# the same", "nonsense: 1", "hami: {deviceSplitCount: 10}"):
        await kube.patch(CONFIG_MAPS, "lamina", config_map(text), namespace="lamina-system")
        await asyncio.sleep(0.01)
        assert not waiting.done(), text
    await kube.delete(CONFIG_MAPS, "lamina", namespace="lamina-system")
    await asyncio.sleep(0.01)
    assert not waiting.done(), "nobody meant the default by removing it"
    await kube.create(CONFIG_MAPS, config_map(SPLIT))
    assert await asyncio.wait_for(waiting, 60) == load(SPLIT, "c")


async def test_a_file_is_looked_at_again_and_may_be_away_for_a_while(tmp_path: Path, kept: Kept) -> None:
    path, clock = tmp_path / "c", FakeClock()
    waiting = asyncio.create_task(another(FakeKube(), path, DEFAULT, clock, kept))
    await asyncio.sleep(0.05)
    path.write_text(SPLIT)
    await clock.advance(FILE_EVERY_S)
    assert await asyncio.wait_for(waiting, 60) == load(SPLIT, "c")


async def test_an_agent_that_starts_while_the_configuration_is_refused_works_by_the_last_one(kept: Kept) -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map(SPLIT))
    first = await read(kube, None, kept)
    await kube.patch(CONFIG_MAPS, "lamina", config_map("nonsense: 1"), namespace="lamina-system")
    assert await read(kube, None, kept) == first == load(SPLIT, "c")
    waiting = asyncio.create_task(another(kube, None, first, FakeClock(), kept))
    await kube.patch(CONFIG_MAPS, "lamina", config_map("hami: {deviceSplitCount: 4}"), namespace="lamina-system")
    second = await asyncio.wait_for(waiting, 60)
    await kube.patch(CONFIG_MAPS, "lamina", config_map("nonsense: 1"), namespace="lamina-system")
    assert await read(kube, None, kept) == second == load("hami: {deviceSplitCount: 4}", "c")


async def test_a_kept_configuration_that_is_not_understood_helps_nobody(kept: Kept) -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map("nonsense: 1"))
    kept.write("of: a later release")
    with pytest.raises(BadInput, match="unknown key nonsense"):
        await read(kube, None, kept)
