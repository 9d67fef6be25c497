"""The configuration in force: read, followed, refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lamina.control import configuration
from lamina.control.configuration import Configuration, read_config_map, read_file
from lamina.errors import BadInput
from lamina.ports.kube import CONFIG_MAPS, EVENTS, EventRecorder, Object
from lamina.ports.kube.fake import FakeKube
from tests.control.cluster import until

SPLIT_5, SPLIT_7, BROKEN = ("hami: {deviceSplitCount: 5}", "hami: {deviceSplitCount: 7}", "hami: {splitCount: 5}")


def config_map(text: str) -> Object:
    return {"metadata": {"name": "lamina", "namespace": "lamina-system"}, "data": {"lamina.yaml": text}}


def split(config: Configuration) -> int:
    return config.value.hami.device_split_count


async def test_without_a_config_map_the_defaults_hold() -> None:
    assert split(await read_config_map(FakeKube())) == 10


@asynccontextmanager
async def followed(text: str) -> AsyncIterator[tuple[FakeKube, Configuration]]:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map(text))
    config = await read_config_map(kube)
    events = EventRecorder(kube, "lamina", now=lambda: 0.0)
    task = asyncio.create_task(configuration.follow_config_map(kube, config, events))
    yield kube, config
    task.cancel()


async def test_a_changed_config_map_comes_into_force_and_listeners_hear_of_it() -> None:
    async with followed(SPLIT_5) as (kube, config):
        heard: list[int] = []
        config.listeners.append(lambda: heard.append(split(config)))
        assert split(config) == 5
        await kube.replace(CONFIG_MAPS, config_map(SPLIT_7))
        await until(lambda: heard == [7])
        await kube.delete(CONFIG_MAPS, "lamina", namespace="lamina-system")
        await kube.create(CONFIG_MAPS, config_map(SPLIT_5))
        await until(lambda: heard == [7, 5])


async def test_an_invalid_one_is_refused_with_an_event_and_the_old_one_stays() -> None:
    async with followed(SPLIT_5) as (kube, config):
        await kube.replace(CONFIG_MAPS, config_map(BROKEN))

        async def events() -> list[Object]:
            return (await kube.list(EVENTS)).items

        (event,) = await until(events)
        assert event["reason"] == "ConfigurationRefused" and "unknown key splitCount" in event["message"]
        assert event["involvedObject"]["name"] == "lamina" and split(config) == 5


async def test_at_the_start_an_invalid_one_is_refused() -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map(BROKEN))
    with pytest.raises(BadInput, match=r"ConfigMap lamina-system/lamina, lamina\.yaml: unknown key splitCount in hami"):
        await read_config_map(kube)


async def test_a_file_is_read_and_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "_FILE_EVERY_S", 0.001)
    path = tmp_path / "lamina.yaml"
    path.write_text(SPLIT_5)
    config = await read_file(path)
    task = asyncio.create_task(configuration.follow_file(path, config))
    for text, expected in ((SPLIT_7, 7), (BROKEN, 7), (SPLIT_5, 5)):
        path.write_text(text)
        await until(lambda expected=expected: split(config) == expected)
    path.unlink()
    await asyncio.sleep(0.005)
    assert split(config) == 5 and not task.done()
    task.cancel()


async def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none\.yaml cannot be read: No such file"):
        await read_file(tmp_path / "none.yaml")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="is not text in UTF-8"):
        await read_file(tmp_path / "bytes")
