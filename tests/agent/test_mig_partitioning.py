"""One GPU is partitioned as wanted: from every layout, with steps that fail, and never while it is in use."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest
from msgspec import structs

from lamina.agent.mig.apply import Users, partition
from lamina.agent.mig.maker import MigMaker, Ownership
from lamina.configuration.mig_parted import MigTarget
from lamina.core.mig_cards import MIG_CARDS
from lamina.errors import BadInput, NotYet
from lamina.ports.files import Files
from lamina.ports.nvml import FakeNvml, GpuFacts, GpuProcess, Nvml
from lamina.ports.nvml.fake import fake_gpus
from tests.worlds.deaths import Died, Life, mortal

A100 = MIG_CARDS["A100-40GB"]
GPU = fake_gpus(1)[0].uuid
BALANCED = MigTarget(True, dict(A100.balanced()))


def fake() -> FakeNvml:
    return FakeNvml([structs.replace(fake_gpus(1)[0], mig_capable=True, pci_device=0x20B010DE)])


class NoDisk(Files):
    """Notes are kept in memory only."""

    def write(self, path: Path, content: bytes, *, mode: int = 0o644) -> None:
        return None


def maker(nvml: Nvml) -> MigMaker:
    return MigMaker(nvml, Ownership(Path("mig.json"), NoDisk()))


def using(users: Mapping[str, Sequence[str]] | None = None) -> Callable[[], Awaitable[Users]]:
    async def answer() -> Users:
        return users or {}

    return answer


def facts(nvml: FakeNvml) -> GpuFacts:
    return nvml.present[0]


async def layout(nvml: FakeNvml) -> Counter[str]:
    return Counter(instance.profile for instance in await nvml.mig_instances(GPU))


async def test_every_standard_geometry_follows_every_other() -> None:
    wanted = [MigTarget(False), MigTarget(True), BALANCED]
    wanted += [MigTarget(True, {profile.name: A100.most(profile)}) for profile in A100.profiles]
    nvml = fake()
    for before in wanted:
        for after in wanted:
            await partition(maker(nvml), GPU, before, using())
            await partition(maker(nvml), GPU, after, using())
            assert await layout(nvml) == Counter(after.counts)
            assert facts(nvml).mig_enabled == after.enabled


async def test_what_is_wanted_and_there_stays() -> None:
    nvml = fake()
    await partition(maker(nvml), GPU, MigTarget(True, {"3g.20gb": 1, "1g.5gb": 1}), using())
    before = set(nvml.instances[GPU])
    await partition(maker(nvml), GPU, MigTarget(True, {"3g.20gb": 1, "1g.5gb": 2}), using())
    assert before < set(nvml.instances[GPU])


async def test_an_instance_in_use_stays_and_what_conflicts_with_it_waits() -> None:
    nvml = fake()
    await partition(maker(nvml), GPU, MigTarget(True, {"3g.20gb": 2}), using())
    busy = next(each for each in nvml.instances[GPU] if each.start == 0)
    users = using({busy.uuid: ["pod default/a"]})
    await partition(maker(nvml), GPU, MigTarget(True, {"3g.20gb": 1, "1g.5gb": 3}), users)
    assert busy in nvml.instances[GPU] and await layout(nvml) == Counter({"3g.20gb": 1, "1g.5gb": 3})
    for impossible in (MigTarget(True, {"1g.5gb": 7}), MigTarget(True, {"3g.20gb": 1, "4g.20gb": 1}), MigTarget(False)):
        before = nvml.instances[GPU]
        with pytest.raises(NotYet, match="pod default/a"):
            await partition(maker(nvml), GPU, impossible, users)
        assert busy in nvml.instances[GPU] and nvml.instances[GPU] == before, "and nothing is half-applied"


async def test_the_mode_changes_only_on_an_idle_gpu() -> None:
    nvml = fake()
    with pytest.raises(NotYet, match="cannot change the MIG mode of GPU 0 while it is in use by pod default/b"):
        await partition(maker(nvml), GPU, BALANCED, using({GPU: ["pod default/b"]}))
    assert not facts(nvml).mig_enabled
    nvml.running[GPU] = (GpuProcess(7, 100),)
    with pytest.raises(NotYet, match="pending"):
        await partition(maker(nvml), GPU, BALANCED, using())
    nvml.running.clear()
    await partition(maker(nvml), GPU, BALANCED, using())
    assert await layout(nvml) == Counter(BALANCED.counts)


async def test_what_does_not_fit_is_refused_before_anything_is_touched() -> None:
    nvml = fake()
    await partition(maker(nvml), GPU, BALANCED, using())
    before = nvml.instances[GPU]
    with pytest.raises(BadInput, match=r"of one profile alone fit 7 1g\.5gb"):
        await partition(maker(nvml), GPU, MigTarget(True, {"7g.40gb": 1, "1g.5gb": 1}), using())
    assert nvml.instances[GPU] == before


@pytest.mark.parametrize("seed", range(4))
async def test_a_run_that_was_killed_at_any_step_is_taken_up(seed: int) -> None:
    chosen = random.Random(seed)
    wanted = [
        BALANCED,
        MigTarget(True, {"1g.5gb": 7}),
        MigTarget(True, {"3g.20gb": 2}),
        MigTarget(False),
        MigTarget(True, {"7g.40gb": 1}),
    ]
    for moment in range(20):
        nvml = fake()
        before, after = chosen.sample(wanted, 2)
        await partition(maker(nvml), GPU, before, using())
        mortal_nvml = mortal(nvml, Life(moment, torn=chosen.random() < 0.5))
        try:
            await partition(maker(mortal_nvml), GPU, after, using())
        except Died:
            await partition(maker(nvml), GPU, after, using())
        assert await layout(nvml) == Counter(after.counts) and facts(nvml).mig_enabled == after.enabled
        assert all(instance.uuid for instance in nvml.instances.get(GPU, ()))
