"""What has to be true at every moment, derived from the state itself and not from any record of it."""

from collections import defaultdict
from pathlib import Path

from lamina.agent.inventory.native_devices import unit_uuid
from lamina.agent.mps.clients import MEMORY, PIPE, THREADS
from lamina.core.gpus import Mode
from lamina.core.grants import ContainerGrant
from lamina.core.ledger import NOTHING, Taken, taken_by
from lamina.core.mig import Placed
from lamina.core.quantities import MIB
from lamina.enforcement import read_limits
from lamina.placement.state.modes import mode_of_all
from lamina.ports.kube import PODS
from tests.whole_node.kubelet import Container, Started
from tests.whole_node.world import CARD, FACTS, GPUS, World

SLOTS = 10


async def check(world: World) -> set[str]:
    """How containers use GPUs now, such as `mig by grant`. Raises AssertionError with what is not so."""
    await _nothing_is_promised_twice(world)
    uses: set[str] = set()
    modes: dict[str, set[Mode | str]] = defaultdict(set)
    holders: dict[str, set[str]] = defaultdict(set)
    instances: dict[str, set[str]] = defaultdict(set)
    for pod, container in world.kubelet.containers:
        if (running := container.running) is None:
            continue
        _nothing_was_touched(running, resized=pod.uid in world.resized)
        if pod.uid in world.resized:
            await _may_use_no_more_than_counts(world, pod.uid, container)
        if running.grant is not None:
            _has_its_grant(world, running, running.grant)
            found = {share.gpu: share.mode for share in running.grant.shares}
            for unit in _observed(running):
                if unit.startswith("MIG-"):
                    instances[unit].add(pod.uid)
        else:
            found = _has_its_devices(world, container, running)
        for gpu, mode in found.items():
            modes[gpu].add(mode)
            holders[gpu].add(pod.uid)
            uses.add(f"{mode.value} by {'device' if running.grant is None else 'grant'}")
    for gpu in _claims_fit(world):
        modes[gpu].add("claims")
        uses.add("claim")
    for gpu in _mig_claims_fit(world, instances):
        modes[gpu].add("MIG devices of claims")
        uses.add("mig by claim")
    for gpu, found_modes in modes.items():
        assert len(found_modes) == 1, f"{gpu} is in the modes {found_modes}"
        assert found_modes != {Mode.WHOLE} or len(holders[gpu]) == 1, f"{gpu} is given whole to several pods"
        facts = next((each for each in world.nvml.present if each.uuid == gpu), None)
        by_mig = found_modes in ({Mode.MIG}, {"MIG devices of claims"})
        assert facts is None or facts.mig_enabled == by_mig, f"{gpu} is not in mode {found_modes}"
        assert (gpu in world.mps.daemons) == (found_modes == {Mode.MPS}), f"a daemon of MPS with {found_modes}"
    assert all(len(pods) == 1 for pods in instances.values()), "an instance is in two pods"
    for gpu, made in world.theirs:
        assert made in world.nvml.instances[gpu], "what others made was removed"
    for there in world.nvml.instances.values():
        CARD.check(sorted((Placed(each.profile, each.start) for each in there), key=_size))
    return uses


async def _nothing_is_promised_twice(world: World) -> None:
    """The grants of all pods that are bound and not over fit the GPUs together."""
    bound = {
        pod["metadata"]["uid"]
        for pod in (await world.kube.list(PODS)).items
        if pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    }
    total: dict[str, Taken] = defaultdict(lambda: NOTHING)
    modes: dict[str, set[Mode]] = defaultdict(set)
    for grant in await world.grants():
        if grant.pod_uid in bound:
            for gpu, taken in taken_by(grant.containers).items():
                total[gpu] = total[gpu].plus(taken)
                modes[gpu].add(mode_of_all(taken))
    assert total.keys() <= set(GPUS)
    assert all(len(each) == 1 for each in modes.values()), f"GPUs are granted in several modes: {modes}"
    for gpu, taken in total.items():
        if taken.instances:
            assert taken.slots == len(taken.instances), f"{gpu} is partitioned, and allocated otherwise"
            CARD.check(sorted(taken.instances, key=_size))
        else:
            assert taken.memory_mib <= FACTS[0].memory_mib, f"{gpu}: {taken}"  # type: ignore[operator]
            assert taken.cores <= 100 and taken.slots <= SLOTS, f"{gpu}: {taken}"
        assert not taken.whole or taken.slots == 1, f"{gpu}: {taken}"


def _claims_fit(world: World) -> dict[str, int]:
    """What running containers have by claims, in MiB by GPU: what was allocated to them, and no more than there is."""
    total = FACTS[0].memory_mib or 0
    used: dict[str, int] = defaultdict(int)
    for claim in world.door.claims.values():
        if (running := claim.running) is None or claim.place is not None:
            continue
        _nothing_was_touched(running)
        assert _observed(running) == [claim.gpu], "not the GPU of the claim"
        limits = [each.memory_bytes // MIB for each in running.limits.devices] if running.limits else []
        assert limits == ([claim.memory_mib] if claim.memory_mib else []), "not the limits of the claim"
        used[claim.gpu] += claim.memory_mib or total
    assert all(amount <= total for amount in used.values()), f"claims have more than there is: {used}"
    return used


def _mig_claims_fit(world: World, instances: dict[str, set[str]]) -> set[str]:
    """The GPUs of which claims have MIG devices: each has the one that was allocated to it."""
    found = set()
    for claim in world.door.claims.values():
        if claim.running is None or claim.place is None:
            continue
        _nothing_was_touched(claim.running)
        device = _device(world, claim.gpu, claim.place)
        assert _observed(claim.running) == [device], "not the MIG device of the claim"
        assert claim.running.limits is None, "the driver limits a MIG device"
        instances[device].add(claim.uid)
        found.add(claim.gpu)
    return found


async def _may_use_no_more_than_counts(world: World, uid: str, container: Container) -> None:
    """What a container may use is what its grant counts as taken, or less."""
    running = container.running
    assert running is not None
    counted = {
        share.gpu: share
        for grant in await world.grants()
        if grant.pod_uid == uid
        for each in grant.containers
        if each.name == container.name
        for share in each.shares
    }
    limits = read_limits(Path(running.mounts["/run/lamina/limits"])) if running.limits is not None else None
    for device in limits.devices if limits is not None and counted else ():
        share = counted[device.uuid]
        assert device.guaranteed <= share.memory_mib * MIB, f"more memory than counts as taken: {device} {share}"
        assert device.memory_bytes <= share.limit_mib * MIB, f"more memory than its limit: {device} {share}"
        assert device.cores_percent <= share.cores, f"more time than counts as taken: {device} {share}"


def _nothing_was_touched(running: Started, *, resized: bool = False) -> None:
    for path, text in running.specs.items():
        assert path.exists() and path.read_text() == text, "the CDI spec of a running container was changed"
    if running.limits is not None and not resized:
        assert read_limits(Path(running.mounts["/run/lamina/limits"])) == running.limits, "its limits were changed"


def _has_its_grant(world: World, running: Started, grant: ContainerGrant) -> None:
    shares = sorted(grant.shares, key=lambda each: (GPUS.index(each.gpu), each.mig.start if each.mig else 0))
    assert (PIPE in running.env) == (shares[0].mode is Mode.MPS)
    if shares[0].mode is Mode.MPS:
        _is_a_client(world, running, shares[0].gpu)
        assert running.env[MEMORY] == f"0={shares[0].limit_mib}M"
        assert running.env.get(THREADS) == (str(shares[0].cores) if shares[0].cores else None)
    if shares[0].mode is Mode.MIG:
        assert running.limits is None
        places = [(each.gpu, Placed(each.mig.profile, each.mig.start)) for each in shares if each.mig]
        assert _observed(running) == [_device(world, gpu, place) for gpu, place in places], (
            "not the instances of the grant"
        )
        return
    assert _observed(running) == [each.gpu for each in shares], "not the GPUs of the grant"
    if shares[0].mode is Mode.WHOLE:
        assert running.limits is None
        return
    assert running.limits is not None, "no limits"
    given = [(each.uuid, each.guaranteed, each.memory_bytes, each.cores_percent) for each in running.limits.devices]
    assert given == [(each.gpu, each.memory_mib * MIB, each.limit_mib * MIB, each.cores) for each in shares], (
        "not the limits of the grant"
    )


def _is_a_client(world: World, running: Started, gpu: str) -> None:
    assert running.daemon is not None and world.mps.daemons.get(gpu) is running.daemon, "its daemon of MPS is gone"
    assert gpu in world.nvml.exclusive
    assert running.mounts[running.env[PIPE]] == str(world.root / "mps" / gpu / "pipe")


def _device(world: World, gpu: str, place: Placed) -> str:
    there = world.nvml.instances.get(gpu, ())
    return next((each.uuid for each in there if Placed(each.profile, each.start) == place), f"none at {place}")


def _has_its_devices(world: World, container: Container, running: Started) -> dict[str, Mode]:
    """The GPUs that kubelet gave the container, by the mode in which it has them."""
    ids = [id for each in container.devices.values() for id in each]
    units = {unit_uuid(id) for id in ids}
    assert units and all(unit.startswith(("GPU-", "MIG-")) for unit in units), "it runs without a grant"
    if len(container.devices) == 1:
        assert set(_observed(running)) == units, "not the devices that kubelet gave it"
    if PIPE in running.env:
        (gpu,) = units
        _is_a_client(world, running, gpu)
        return {gpu: Mode.MPS}
    parts = {each.uuid: gpu for gpu, there in world.nvml.instances.items() for each in there}
    lost = {unit for unit in units if unit.startswith("MIG-")} - parts.keys()
    assert not lost, "a MIG device was taken from a running container"
    shared = Mode.TIMESLICE if any("::" in id for id in ids) else Mode.WHOLE
    return {parts.get(unit, unit): Mode.MIG if unit in parts else shared for unit in units}


def _observed(running: Started) -> list[str]:
    return running.env["NVIDIA_VISIBLE_DEVICES"].split(",")


def _size(place: Placed) -> tuple[int, int]:
    return -CARD.profile(place.profile).size, place.start
