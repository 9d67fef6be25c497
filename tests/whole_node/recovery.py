"""The end state once nothing fails any more: every pod that can run runs, and ended pods leave nothing behind."""

from pathlib import Path

from lamina.agent.cleanup.release import UNCLAIMED_S
from lamina.agent.mig.maker import Ownership
from lamina.agent.mps.lifecycle import DaemonJournal
from lamina.agent.state.record import Record
from lamina.core.sharing import TimeSlice
from lamina.ports.kube import PODS
from tests.whole_node import kinds
from tests.whole_node.claims import CLAIMS, Claim
from tests.whole_node.invariants import check
from tests.whole_node.kubelet import UNTRIED
from tests.whole_node.world import POLL_S, World

HEALTHY_S = 120.0
"""After an error of a GPU, or a daemon of MPS that did not start, all is well by then."""
FINAL = (
    "recreate",  # the pod: what it was placed with no longer exists
    "no plugin serves",  # its resource has gone with the configuration
    "may not be partitioned for a grant",
    "is partitioned by MIG and cannot be shared",
    "is in mode",  # as long as another pod has the GPU
    "has no grant",
    "is still running with",  # a client of MPS with other limits
)
"""Reasons that hold until an administrator changes the configuration or deletes a pod."""


async def recover(world: World) -> None:
    """Nothing fails any more, and enough time passes to notice."""
    world.life.left = None
    world.nvml.broken = ""
    for number in list(world.lost):
        world.lose_or_find(number)
    await world.clean_by_hand()
    await world.time_passes(HEALTHY_S)
    await settle(world)


async def settle(world: World, rounds: int = 4) -> None:
    for _ in range(rounds):
        await world.schedule()
        await world.kubelet_works()
        await world.inits_end()
        await world.kubelet_works()
        await world.time_passes(2 * POLL_S)
        await check(world)


async def claims_run_or_wait(world: World) -> None:
    """Claims that are allocated run, or say why they wait. Then all of them end."""
    for claim in list(world.door.claims.values()):
        assert claim.running is not None or claim.over or not claim.gpu or _waits(world, claim), claim.reason
        await world.door.ends(claim, forced=False)
    await settle(world)
    assert world.door.claims == {}, "claims that are over are still prepared"


def _waits(world: World, claim: Claim) -> bool:
    """For a GPU that the other door has handed out, or to be recreated because the GPU was partitioned since.

    Or because it may not be partitioned any more as the claim needs it.
    """
    if "recreate the claim" in claim.reason:
        by_hand = any(gpu == claim.gpu for gpu, _ in world.theirs)
        if claim.place is not None and (world.layout or by_hand or world.policy not in kinds.MIG_POLICIES):
            return True
        return any(each.uuid == claim.gpu and each.mig_enabled for each in world.nvml.present)
    return any(words in claim.reason for words in ("through the device plugin", "is in mode"))


async def who_can_run_runs(world: World) -> None:
    """Pods that run, or say why they never will in a way that people can act upon; these are deleted."""
    for _ in range(4):
        waiting = [pod for pod in world.kubelet.pods.values() if not pod.runs]
        for pod in waiting:
            reasons = [each.reason for each in pod.containers if each.reason not in ("", UNTRIED)]
            assert reasons and all(any(word in reason for word in FINAL) for reason in reasons), reasons
            await world.delete(pod.name)
        if not waiting:
            return
        await settle(world)
    raise AssertionError("pods wait for ever")


async def all_end(world: World) -> None:
    """Every pod is deleted, and the time passes in which names without a pod are forgotten."""
    for pod in (await world.kube.list(PODS)).items:
        await world.delete(pod["metadata"]["name"])
    await world.clean_by_hand()
    await world.time_passes(UNCLAIMED_S + 2 * POLL_S)
    await check(world)


async def nothing_of_pods_is_left(world: World) -> None:
    record = Record(world.settings.record, world.files)
    assert (record.allocations, record.claims) == ((), {}), "the record"
    assert names(world.root / "cdi") == [], "CDI specs"
    assert names(world.settings.containers) == [], "folders of containers"
    assert await world.grants() == [], "grants"
    made = Ownership(world.settings.made, world.files)
    assert all(each.gpu in made.labelled for each in made.instances), "instances that were made for grants"
    daemons = DaemonJournal(world.settings.mps, world.files)
    assert not any(each.for_grants for gpu in daemons.gpus if (each := daemons.get(gpu))), "daemons of MPS for grants"


async def a_neutral_node_serves(world: World) -> None:
    """Without labels and with the defaults each of these runs on the empty node."""
    await world.label(kinds.FILE_LABEL, "")
    await world.label(kinds.MIG_LABEL, "all-disabled")
    await world.configure("any")
    await world.time_passes(HEALTHY_S)
    await world.label(kinds.MIG_LABEL, "")
    await world.time_passes(HEALTHY_S)
    assert not any(world.nvml.instances.values()), f"instances: {world.nvml.instances}"
    for kind in ("small", "a GPU", "two GPUs", "vgpu, mig", "vgpu, mps", "timed units", "after init"):
        await runs_alone(world, kind)
    await world.configure("either")
    await world.time_passes(HEALTHY_S)
    for kind in CLAIMS:
        claim = await world.door.comes(kind)
        await settle(world, 3)
        assert claim.running is not None, f"{kind}: {claim.reason}"
        await world.door.ends(claim, forced=False)
        await settle(world, 2)


async def runs_alone(world: World, kind: str) -> None:
    name = await world.a_pod_comes(kind)
    await settle(world, 2)
    found = [pod for pod in world.kubelet.pods.values() if pod.name == name]
    assert [pod.runs for pod in found] == [True], f"{kind}: {[c.reason for pod in found for c in pod.containers]}"
    await world.delete(name)
    await world.time_passes(2 * POLL_S)
    await check(world)


async def nothing_is_left(world: World) -> None:
    """Of anything, once Lamina is switched off."""
    await world.configure("off")
    await world.time_passes(HEALTHY_S)
    await nothing_of_pods_is_left(world)
    assert not any(world.nvml.instances.values()), "MIG instances"
    assert not any(each.mig_enabled for each in world.nvml.present), "MIG modes"
    assert not world.mps.daemons and not world.nvml.exclusive and names(world.root / "mps") == [], "MPS"
    assert set(world.slices.lengths.values()) <= {TimeSlice.DEFAULT}, "time slices"
    assert all(not healthy for reported in world.kubelet.devices.values() for healthy in reported.values()), "devices"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


async def everything_comes_to_rest(world: World) -> None:
    await recover(world)
    await claims_run_or_wait(world)
    await who_can_run_runs(world)
    await all_end(world)
    await nothing_of_pods_is_left(world)
    await a_neutral_node_serves(world)
    await nothing_is_left(world)
