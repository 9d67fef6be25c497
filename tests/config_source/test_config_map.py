"""The ConfigMap as programs and commands read it once."""

import pytest

from lamina.config_source.live import config_map_object, read_config_map, text_in_force
from lamina.configuration import CONFIG_MAP, CONFIG_MAP_KEY, DEFAULT
from lamina.configuration.config_map import IN_FORCE
from lamina.core.component_names import DEFAULT_NAMESPACE
from lamina.errors import BadInput
from lamina.ports.kube import CONFIG_MAPS
from lamina.ports.kube.fake import FakeKube

ACCEPTED = "sharing: {slots: 3}"


async def with_text(text: str) -> FakeKube:
    kube, meta = FakeKube(), {"name": CONFIG_MAP, "namespace": DEFAULT_NAMESPACE}
    accepted = meta | {"annotations": {IN_FORCE: ACCEPTED}}
    await kube.create(CONFIG_MAPS, {"metadata": accepted, "data": {CONFIG_MAP_KEY: text}})
    return kube


async def test_without_a_config_map_the_defaults_are_in_force() -> None:
    assert await config_map_object(FakeKube()) is None
    assert (await read_config_map(FakeKube())).value == (await text_in_force(FakeKube())).config == DEFAULT


async def test_a_refused_text_starts_no_program_and_commands_read_the_accepted_one() -> None:
    kube = await with_text("nonsense: 1")
    with pytest.raises(BadInput, match="nonsense"):
        await read_config_map(kube)
    found = await text_in_force(kube)
    assert "nonsense" in found.refusal and found.text == ACCEPTED
