"""The classes of devices: made where they are missing, again when they were deleted, and no other is changed."""

import pytest

from lamina.controller.claims.classes import EVERY_S, ClassMaker
from lamina.dra.names import DRIVER, HAMI_DRIVER, device_classes, differs
from lamina.ports.kube import DEVICE_CLASSES
from lamina_lab.api.schema.device_validation import device_class
from tests.controller.binders import Bench


class Maker(Bench):
    def __init__(self) -> None:
        super().__init__()
        self.classes = ClassMaker(self.context, DRIVER, lambda: self.leads)

    async def names(self) -> list[str]:
        return sorted(each["metadata"]["name"] for each in (await self.kube.list(DEVICE_CLASSES)).items)


async def test_classes_are_made_only_where_they_are_missing() -> None:
    maker = Maker()
    theirs = {"metadata": {"name": DRIVER}, "spec": {"selectors": []}}
    await maker.kube.create(DEVICE_CLASSES, theirs)
    await maker.classes.step()
    assert await maker.names() == [DRIVER, HAMI_DRIVER, "mig.nvidia.com"]
    assert (await maker.kube.get(DEVICE_CLASSES, DRIVER))["spec"] == theirs["spec"]


async def test_a_deleted_class_comes_back() -> None:
    maker = Maker()
    await maker.classes.step()
    await maker.kube.delete(DEVICE_CLASSES, HAMI_DRIVER)
    await maker.clock.advance(EVERY_S)
    await maker.classes.step()
    assert HAMI_DRIVER in await maker.names()


async def test_only_the_leader_makes_classes() -> None:
    maker = Maker()
    maker.leads = False
    await maker.classes.step()
    assert await maker.names() == []


@pytest.mark.parametrize("driver", [DRIVER, "gpu.example.com"])
def test_the_api_server_takes_the_classes(driver: str) -> None:
    assert [device_class(each) for each in device_classes(driver)] in ([[], [], []], [[], []])
    assert device_classes(DRIVER)[0]["spec"]["extendedResourceName"] == "nvidia.com/gpu"


@pytest.mark.parametrize("wanted", device_classes(DRIVER), ids=lambda each: each["metadata"]["name"])
def test_a_class_differs_by_what_it_selects_or_serves(wanted: dict[str, dict[str, object]]) -> None:
    spec = wanted["spec"]
    defaulted = {"metadata": {"name": "x", "labels": {}}, "spec": {"config": [], **spec}}
    assert not differs(defaulted, wanted)
    for changed in (
        {**spec, "selectors": []},
        {**spec, "extendedResourceName": "example.com/other"},
        {key: value for key, value in spec.items() if key != "selectors"},
    ):
        assert differs({"spec": changed}, wanted)
