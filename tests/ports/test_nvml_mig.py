"""MIG through the port: the driver over a simulated machine and the fake behave alike."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from lamina.core.mig import Placed
from lamina.errors import Outside
from lamina.ports.nvml import DriverNvml, FakeNvml, Nvml
from lamina.ports.nvml.fake import fake_gpus
from lamina_lab import simgpu

A100 = "NVIDIA A100-SXM4-40GB"


async def course(nvml: Nvml) -> list[Any]:
    """What a GPU's cutting looks like from outside; ids and UUIDs are the driver's own affair."""
    reported: list[Any] = []
    uuid = (await nvml.gpus())[0].uuid

    async def refused(act: Awaitable[object]) -> bool:
        try:
            await act
        except Outside:
            return True
        return False

    async def there() -> list[tuple[str, int, bool]]:
        return sorted((i.profile, i.start, i.uuid.startswith("MIG-")) for i in await nvml.mig_instances(uuid))

    reported.append((await nvml.mig_card(uuid)).model)
    reported.append(await refused(nvml.create_mig(uuid, Placed("1g.5gb", 0))))
    reported.append([await nvml.set_mig_mode(uuid, True), (await nvml.gpus())[0].mig_enabled])
    first = await nvml.create_mig(uuid, Placed("3g.20gb", 4))
    second = await nvml.create_mig(uuid, Placed("1g.5gb+me", 1))
    reported.append([first.id != second.id, first.uuid != second.uuid, await there()])
    listed = {(each.profile, each.uuid) for each in (await nvml.gpus())[0].instances}
    reported.append(listed == {(each.profile, each.uuid) for each in (first, second)})
    reported.append(
        [await refused(nvml.create_mig(uuid, Placed(*place))) for place in (("2g.10gb", 0), ("1g.5gb+me", 2))]
    )
    reported.append([await nvml.set_mig_mode(uuid, False), (await nvml.gpus())[0].mig_enabled])
    await nvml.destroy_mig(uuid, first.id)
    await nvml.destroy_mig(uuid, first.id)
    reported.append(await there())
    await nvml.destroy_mig(uuid, second.id)
    reported.append([await nvml.set_mig_mode(uuid, False), await there()])
    return reported


EXPECTED = [
    "A100-40GB", True, [True, True], [True, True, [("1g.5gb+me", 1, True), ("3g.20gb", 4, True)]], True, [True, True],
    [False, True], [("1g.5gb+me", 1, True)], [True, []],
]  # fmt: skip


def on_a_machine(path: Path, test: str) -> Any:
    """What a coroutine function of this module tells in a process of a simulated machine."""
    simgpu.write(simgpu.parse("gpus: [{model: A100-SXM4-40GB}]"), path)
    script = f"import asyncio, json\nfrom tests.ports.test_nvml_mig import *\nprint(json.dumps(asyncio.run({test}())))"
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | simgpu.environment(path), capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def with_driver(act: Callable[[Nvml], Awaitable[Any]]) -> Any:
    nvml = DriverNvml()
    try:
        return await act(nvml)
    finally:
        await nvml.close()


async def course_of_the_driver() -> Any:
    return await with_driver(course)


def test_a_gpu_is_partitioned_by_the_driver(tmp_path: Path) -> None:
    assert on_a_machine(tmp_path / "machine", "course_of_the_driver") == json.loads(json.dumps(EXPECTED))


def test_the_fake_does_the_same() -> None:
    gpu = structs.replace(fake_gpus(1, name=A100, memory_mib=40960)[0], mig_capable=True, pci_device=0x20B010DE)
    assert asyncio.run(course(FakeNvml([gpu]))) == EXPECTED


async def memory_of_a_device() -> Any:
    """What the device reports next to its GPU."""

    async def act(nvml: Nvml) -> Any:
        uuid = (await nvml.gpus())[0].uuid
        await nvml.set_mig_mode(uuid, True)
        made = await nvml.create_mig(uuid, Placed("1g.5gb", 6))
        read = await nvml.readings()
        return [sorted(read) == sorted([uuid, made.uuid]), read[made.uuid].used_bytes, read[made.uuid].free_bytes]

    return await with_driver(act)


def test_a_device_reports_its_memory(tmp_path: Path) -> None:
    assert on_a_machine(tmp_path / "machine", "memory_of_a_device") == [True, 0, 4864 << 20]


async def half_made() -> Any:
    """A GPU instance without a compute instance, as a killed process leaves it."""
    import pynvml

    async def act(nvml: Nvml) -> Any:
        uuid = (await nvml.gpus())[0].uuid
        await nvml.set_mig_mode(uuid, True)
        pynvml.nvmlDeviceCreateGpuInstance(pynvml.nvmlDeviceGetHandleByUUID(uuid), 9)
        (found,) = await nvml.mig_instances(uuid)
        await nvml.destroy_mig(uuid, found.id)
        return [found.profile, found.uuid, len(await nvml.mig_instances(uuid))]

    return await with_driver(act)


def test_an_incomplete_instance_is_listed_and_can_be_destroyed(tmp_path: Path) -> None:
    assert on_a_machine(tmp_path / "machine", "half_made") == ["3g.20gb", "", 0]


async def unknown_card() -> Any:
    """A card that the table does not know is read from the driver."""
    from lamina.core import mig_cards
    from lamina.ports.nvml import mig

    known = mig_cards.MIG_CARDS["A100-40GB"]
    mig.mig_card = lambda device: None  # type: ignore[assignment]
    card = await with_driver(_card)
    return [[p.name, p.id, p.index, p.starts, p.size, card.most(p)] for p in card.profiles] == [
        [p.name, p.id, p.index, p.starts, p.size, known.most(p)] for p in known.profiles
    ]


async def _card(nvml: Nvml) -> Any:
    return await nvml.mig_card((await nvml.gpus())[0].uuid)


def test_an_unknown_card_is_described_by_the_driver(tmp_path: Path) -> None:
    assert on_a_machine(tmp_path / "machine", "unknown_card") is True


@pytest.mark.parametrize("named", ["GPU-unknown"])
def test_a_gpu_that_is_not_there_is_named(named: str) -> None:
    with pytest.raises(Outside, match=named):
        asyncio.run(FakeNvml().set_mig_mode(named, True))
