"""Partitions one GPU as target, and changes only what is unused by pods and by processes of any origin.

Existing instances that are desired stay where they are, unless the others do not fit next to them. Instances in use
always stay; if they are in the way, the change is refused with the names of their pods. The result is read back. Every
step starts from the current state, so the next run continues after an interruption anywhere, even within the creation
of an instance.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

from lamina.agent.context import NodeContext
from lamina.agent.inventory.native_devices import unit_uuid
from lamina.agent.mig.maker import MigMaker
from lamina.configuration.mig_parted import MigTarget
from lamina.core.mig import MigCard, Placed
from lamina.errors import BadInput, NotYet
from lamina.ports.nvml import GpuFacts, MigInstanceFacts, Nvml

Users = Mapping[str, Sequence[str]]
"""Descriptions of users such as `pod default/a`, by UUID of a GPU or MIG device. Unused ones have no entry."""


async def pods_using(node: NodeContext, resources: Collection[str]) -> dict[str, list[str]]:
    """The pods and ResourceClaims that hold devices of these resources, by UUID. Raises Outside."""
    users: dict[str, list[str]] = {}
    for allocation in node.record.allocations:
        bound = allocation.bound
        pod = str(bound or "a container that is starting")
        for unit in {unit_uuid(device) for device in allocation.tickets}:
            users.setdefault(unit, []).append(pod)
    for unit, claim in node.record.claimed.items():
        users.setdefault(unit, []).append(f"ResourceClaim {claim}")
    for holder in await node.pod_resources.holders(resources):
        for unit in {unit_uuid(device) for device in holder.devices}:
            users.setdefault(unit, []).append(f"pod {holder.namespace}/{holder.pod}")
    return {unit: list(dict.fromkeys(pods)) for unit, pods in users.items()}


async def processes_using(nvml: Nvml, uuids: Iterable[str]) -> dict[str, list[str]]:
    """The processes on GPUs and MIG devices, by UUID. Raises Outside."""
    running = {uuid: await nvml.processes(uuid) for uuid in uuids}
    return {uuid: [f"process {process.pid}" for process in found] for uuid, found in running.items() if found}


def is_partitioned(facts: GpuFacts, instances: Sequence[MigInstanceFacts], target: MigTarget) -> bool:
    """Whether the GPU is as desired."""
    complete = all(instance.uuid for instance in instances)
    counts = Counter(instance.profile for instance in instances)
    return facts.mig_enabled == target.enabled and complete and counts == Counter(target.counts)


async def partition(maker: MigMaker, uuid: str, target: MigTarget, find_users: Callable[[], Awaitable[Users]]) -> None:
    """Make the GPU as desired. Raises NotYet while something in the way is in use, BadInput, Outside."""
    facts = await maker.facts(uuid)
    existing = await maker.nvml.mig_instances(uuid)
    if is_partitioned(facts, existing, target):
        return
    users = await find_users()
    busy = [instance for instance in existing if users.get(instance.uuid)]
    if facts.mig_enabled != target.enabled:
        if names := [*users.get(uuid, ()), *_users_of(busy, users)]:
            raise NotYet(f"cannot change the MIG mode of GPU {facts.index} while it is in use by {', '.join(names)}")
        for instance in existing:
            await maker.destroy(uuid, instance)
        existing = ()
        await maker.set_mode(facts, target.enabled)
    if target.enabled:
        card = await maker.nvml.mig_card(uuid)
        kept, places = _steps(card, existing, busy, target, users, facts.index)
        for instance in existing:
            if instance not in kept:
                await maker.destroy(uuid, instance)
        for place in places:
            await maker.create(uuid, place)
    await _verify(maker, facts, target)


def _steps(
    card: MigCard,
    existing: Sequence[MigInstanceFacts],
    busy: Sequence[MigInstanceFacts],
    target: MigTarget,
    users: Users,
    index: int,
) -> tuple[list[MigInstanceFacts], tuple[Placed, ...]]:
    """The instances that stay, and the places of those to create."""
    unwanted = Counter(instance.profile for instance in busy) - Counter(target.counts)
    if unwanted:
        names = ", ".join(_users_of([instance for instance in busy if instance.profile in unwanted], users))
        raise NotYet(f"GPU {index}: cannot remove {', '.join(unwanted)} while in use by {names}")
    free = [instance for instance in existing if instance.uuid and instance not in busy]
    refusal: BadInput | None = None
    for candidates in ([*busy, *free], [*busy]):
        kept = _desired_among(candidates, target)
        missing = Counter(target.counts) - Counter(instance.profile for instance in kept)
        try:
            return kept, card.arrange(missing, tuple(Placed(each.profile, each.start) for each in kept))
        except BadInput as problem:
            refusal = problem
    if busy:
        names = ", ".join(_users_of(busy, users))
        raise NotYet(f"GPU {index}: {refusal}; the existing instances are in use by {names}") from refusal
    raise refusal or BadInput(f"GPU {index} cannot be partitioned")


def _desired_among(candidates: Sequence[MigInstanceFacts], target: MigTarget) -> list[MigInstanceFacts]:
    """The first candidates of each profile, as many as are desired."""
    remaining, kept = Counter(target.counts), []
    for instance in candidates:
        if remaining[instance.profile] > 0:
            remaining[instance.profile] -= 1
            kept.append(instance)
    return kept


async def _verify(maker: MigMaker, facts: GpuFacts, target: MigTarget) -> None:
    current = await maker.facts(facts.uuid)
    instances = await maker.nvml.mig_instances(facts.uuid)
    if not is_partitioned(current, instances, target):
        listed = ", ".join(f"{each.profile} at {each.start}" for each in instances) or "no instance"
        mode = "enabled" if current.mig_enabled else "disabled"
        raise NotYet(f"GPU {facts.index} was partitioned, but now has {listed}, with MIG mode {mode}")


def _users_of(instances: Sequence[MigInstanceFacts], users: Users) -> list[str]:
    return list(dict.fromkeys(name for instance in instances for name in users.get(instance.uuid, ())))
