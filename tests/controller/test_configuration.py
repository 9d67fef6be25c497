"""The configuration in force: read, followed, refused."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lamina.config_source import live
from lamina.config_source.live import LiveConfiguration, read_config_map, read_file
from lamina.configuration.config_map import IN_FORCE, SINCE
from lamina.errors import BadInput
from lamina.ports.clock import FakeClock
from lamina.ports.kube import CONFIG_MAPS, EVENTS, EventRecorder, Object, Refused
from lamina.ports.kube.fake import FakeKube
from lamina.ports.kube.moments import seconds_of
from lamina.ports.set_aside import SetAside
from tests.waiting import until
from tests.worlds.objects import config_map

log = logging.getLogger(__name__)

SPLIT_5, SPLIT_7, BROKEN = ("hami: {deviceSplitCount: 5}", "hami: {deviceSplitCount: 7}", "hami: {splitCount: 5}")
OWN_5 = "{apiVersion: lamina.dev/v1alpha1, kind: Configuration, sharing: {slots: 5}}"


def split(config: LiveConfiguration) -> int:
    return config.value.sharing.slots


async def test_without_a_config_map_the_defaults_hold() -> None:
    assert split(await read_config_map(FakeKube())) == 10


async def test_a_config_map_may_have_our_own_form() -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map(OWN_5))
    assert split(await read_config_map(kube)) == 5


async def test_a_file_may_have_our_own_form(tmp_path: Path) -> None:
    path = tmp_path / "lamina.yaml"
    path.write_text(OWN_5)
    assert split(await read_file(path)) == 5


@asynccontextmanager
async def followed(text: str) -> AsyncIterator[tuple[FakeKube, LiveConfiguration]]:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, config_map(text))
    config = await read_config_map(kube)
    events = EventRecorder(kube, "lamina", now=lambda: 0.0)
    task = asyncio.create_task(live.follow_config_map(kube, FakeClock(), config, events, SetAside(log)))
    yield kube, config
    task.cancel()


async def test_a_changed_config_map_takes_effect_and_listeners_are_called() -> None:
    async with followed(SPLIT_5) as (kube, config):
        received: list[int] = []
        config.listeners.append(lambda: received.append(split(config)))
        assert split(config) == 5
        await kube.replace(CONFIG_MAPS, config_map(SPLIT_7))
        await until(lambda: received == [7])
        await kube.delete(CONFIG_MAPS, "lamina", namespace="lamina-system")
        await kube.create(CONFIG_MAPS, config_map(SPLIT_5))
        await until(lambda: received == [7, 5])


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


async def test_a_file_is_read_and_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, clock = tmp_path / "lamina.yaml", FakeClock()
    path.write_text(SPLIT_5)
    config = await read_file(path)
    task = asyncio.create_task(live.follow_file(path, config, clock, SetAside(log)))

    def write(text: str) -> None:
        """At once, as a volume of a ConfigMap changes: a reader never sees half of it."""
        (tmp_path / "new").write_text(text)
        (tmp_path / "new").replace(path)

    async def once(happened: Callable[[], bool]) -> None:
        await until(happened, lambda: caplog.text, task=task, clock=clock, step_s=live._FILE_POLL_S)

    write(SPLIT_7)
    await once(lambda: split(config) == 7)
    write(BROKEN)
    await once(lambda: "unknown key splitCount" in caplog.text)
    assert split(config) == 7
    write(SPLIT_5)
    await once(lambda: split(config) == 5)
    path.unlink()
    await once(lambda: "The configuration is unchanged: cannot read" in caplog.text)
    assert split(config) == 5 and not task.done()
    task.cancel()


async def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read .*none\.yaml: No such file"):
        await read_file(tmp_path / "none.yaml")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match="is not UTF-8 text"):
        await read_file(tmp_path / "bytes")


async def recorded(kube: FakeKube) -> str | None:
    found = await kube.get(CONFIG_MAPS, "lamina", namespace="lamina-system")
    text: str | None = (found["metadata"].get("annotations") or {}).get(IN_FORCE)
    return text


async def test_the_text_in_force_is_recorded_also_while_another_one_is_refused() -> None:
    async with followed(SPLIT_5) as (kube, config):
        await until_recorded(kube, SPLIT_5)
        await kube.patch(CONFIG_MAPS, "lamina", {"data": {"lamina.yaml": BROKEN}}, namespace="lamina-system")

        async def refusals() -> list[Object]:
            return (await kube.list(EVENTS)).items

        await until(refusals)
        assert await recorded(kube) == SPLIT_5
        await kube.replace(CONFIG_MAPS, config_map(BROKEN))
        await until_recorded(kube, SPLIT_5)
        await kube.patch(CONFIG_MAPS, "lamina", {"data": {"lamina.yaml": SPLIT_7}}, namespace="lamina-system")
        await until_recorded(kube, SPLIT_7)
        assert split(config) == 7


async def until_recorded(kube: FakeKube, text: str) -> None:
    async def is_recorded() -> bool:
        return await recorded(kube) == text

    await until(is_recorded)


async def test_a_controller_that_may_not_record_the_text_goes_on() -> None:
    async with followed(SPLIT_5) as (kube, config):
        kube.failing["patch"] = lambda resource, name: Refused("no right to patch")
        await kube.replace(CONFIG_MAPS, config_map(SPLIT_7))
        await until(lambda: split(config) == 7)
        await kube.replace(CONFIG_MAPS, config_map(SPLIT_5))
        await until(lambda: split(config) == 5)


@pytest.mark.parametrize("data", [{"lamina.yml": SPLIT_5}, {"lamina.yml": "", "lamina.yaml": SPLIT_5}, {"x": SPLIT_5}])
async def test_a_text_under_another_key_is_refused(data: dict[str, str]) -> None:
    kube = FakeKube()
    await kube.create(CONFIG_MAPS, {**config_map(""), "data": data})
    with pytest.raises(BadInput, match=r"unknown data key (x|lamina\.yml); rename it to lamina\.yaml"):
        await read_config_map(kube)


async def test_since_when_a_text_is_in_force_is_recorded_with_it() -> None:
    async with followed(SPLIT_5) as (kube, _):

        async def annotations() -> dict[str, str]:
            found = await kube.get(CONFIG_MAPS, "lamina", namespace="lamina-system")
            return found["metadata"].get("annotations") or {}

        await until(annotations)
        first = await annotations()
        assert first[IN_FORCE] == SPLIT_5 and seconds_of(first[SINCE]) is not None
        await kube.patch(CONFIG_MAPS, "lamina", {"data": {"lamina.yaml": BROKEN}}, namespace="lamina-system")
        await until(lambda: len([call for call in kube.calls if call[1] is EVENTS]) > 0)
        assert await annotations() == first
