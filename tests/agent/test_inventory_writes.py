"""The Inventory object stays as the agent advertises it, even if other clients write it."""

from typing import Any

import pytest

from lamina.agent.inventory.publisher import AGAIN_S
from lamina.ports.kube import INVENTORIES, Object
from tests.agent.running_agent import STEP_S, RunningAgent

OTHER_SPECS: tuple[Object, ...] = (
    {"gpus": []},
    {"gpus": "none"},
    {"node": "another"},
    {"idle": [{"podUID": "u", "since": 1.0}]},
    {"driver": "1.0"},
)


@pytest.fixture
async def published(running: RunningAgent) -> RunningAgent:
    """An agent that follows its Inventory."""
    await running.start()
    await running.inventory(lambda found: len(found.gpus) == 2)
    await running.until(lambda: ("watch", INVENTORIES, "") in running.kube.calls)
    return running


async def stored(running: RunningAgent) -> Object:
    return await running.kube.get(INVENTORIES, running.node.name)


async def restored(running: RunningAgent, spec: Object) -> None:
    async def is_back() -> bool:
        return bool((await stored(running))["spec"] == spec)

    await running.until(is_back)


async def change(running: RunningAgent, spec: Object) -> None:
    """Another client changes fields of the spec."""
    before = await stored(running)
    await running.kube.replace(INVENTORIES, {**before, "spec": before["spec"] | spec})


async def report_free(running: RunningAgent, mib: int) -> None:
    """The controller writes the status."""
    status = {"status": {"freeMemoryMiB": mib}}
    await running.kube.patch(INVENTORIES, running.node.name, status, subresource="status")


def replaces(running: RunningAgent) -> int:
    return sum(verb == "replace" and resource == INVENTORIES for verb, resource, _ in running.kube.calls)


@pytest.mark.parametrize("spec", OTHER_SPECS)
async def test_a_changed_inventory_is_written_again(published: RunningAgent, spec: Object) -> None:
    before = (await stored(published))["spec"]
    await change(published, spec)
    await restored(published, before)


async def test_one_that_another_client_made_is_written_again(published: RunningAgent) -> None:
    before = (await stored(published))["spec"]
    await change(published, {"driver": "1.0"})  # so that the next object has a lower generation
    await restored(published, before)
    await published.kube.delete(INVENTORIES, published.node.name)
    await published.kube.create(INVENTORIES, {"metadata": {"name": published.node.name}, "spec": {"node": "another"}})
    await restored(published, before)


async def test_a_status_is_no_reason_to_write(published: RunningAgent) -> None:
    before = replaces(published)
    for mib in (1, 2, 3):
        await report_free(published, mib)
        await published.rounds(int(2 * AGAIN_S / STEP_S))
    assert replaces(published) == before
    assert (await stored(published))["status"] == {"freeMemoryMiB": 3}


async def test_a_definition_that_drops_fields_is_not_written_to_endlessly(
    published: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = published.kube.replace

    async def drop(resource: Any, obj: Object, *, subresource: str = "") -> Object:
        spec = {name: value for name, value in obj["spec"].items() if name != "driver"}
        return await whole(resource, {**obj, "spec": spec}, subresource=subresource)

    monkeypatch.setattr(published.kube, "replace", drop)
    await change(published, {"gpus": []})
    await published.inventory(lambda found: len(found.gpus) == 2 and not found.driver)
    await published.rounds(int(2 * AGAIN_S / STEP_S))
    before = replaces(published)
    for mib in range(5):
        await report_free(published, mib)
        await published.rounds(int(2 * AGAIN_S / STEP_S))
    assert replaces(published) == before


async def test_a_client_that_writes_all_the_time_is_answered_once_a_second(published: RunningAgent) -> None:
    before, began = replaces(published), published.clock.monotonic()
    for number in range(100):
        await change(published, {"driver": str(number)})
        await published.rounds(1)
    seconds = published.clock.monotonic() - began
    assert 2 <= replaces(published) - before - 100 <= seconds / AGAIN_S + 1
