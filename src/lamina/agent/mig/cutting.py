"""Cut one GPU as it is wanted, and touch only what is free.

What is there and wanted stays, wherever it lies, unless the rest does not fit beside it; what is in use always stays,
or the whole is refused with the names of the pods. The result is read back. Every step looks at what is there, so a
run that was cut off anywhere, with half an instance made, is taken up by the next.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from lamina.agent.mig.maker import Maker
from lamina.agent.mig.users import Users
from lamina.dialects.mig_parted import Wish
from lamina.errors import BadInput, NotYet
from lamina.model.mig import MigCard, Placed
from lamina.ports.nvml import GpuFacts, MigInstance


def is_cut(facts: GpuFacts, instances: Sequence[MigInstance], wish: Wish) -> bool:
    """Whether nothing is to be done."""
    whole = all(instance.uuid for instance in instances)
    have = Counter(instance.profile for instance in instances)
    return facts.mig_enabled == wish.enabled and whole and have == Counter(wish.counts)


async def cut(maker: Maker, uuid: str, wish: Wish, users: Callable[[], Awaitable[Users]]) -> None:
    """Make the GPU as it is wanted. Raises NotYet while somebody uses what is in the way, BadInput, Outside."""
    facts = await maker.facts(uuid)
    there = await maker.nvml.mig_instances(uuid)
    if is_cut(facts, there, wish):
        return
    using = await users()
    busy = [instance for instance in there if using.get(instance.uuid)]
    if facts.mig_enabled != wish.enabled:
        if found := [*using.get(uuid, ()), *_users_of(busy, using)]:
            raise NotYet(f"GPU {facts.index} is in use by {', '.join(found)}; its MIG mode can change when it is idle")
        for instance in there:
            await maker.destroy(uuid, instance)
        there = ()
        await maker.set_mode(facts, wish.enabled)
    if wish.enabled:
        card = await maker.nvml.mig_card(uuid)
        kept, places = _steps(card, there, busy, wish, using, facts.index)
        for instance in there:
            if instance not in kept:
                await maker.destroy(uuid, instance)
        for place in places:
            await maker.create(uuid, place)
    await _compare(maker, facts, wish)


def _steps(
    card: MigCard, there: Sequence[MigInstance], busy: Sequence[MigInstance], wish: Wish, using: Users, index: int
) -> tuple[list[MigInstance], tuple[Placed, ...]]:
    """Which instances stay, and the places of those to be made."""
    unwanted = Counter(instance.profile for instance in busy) - Counter(wish.counts)
    if unwanted:
        found = ", ".join(_users_of([each for each in busy if each.profile in unwanted], using))
        raise NotYet(f"GPU {index}: {', '.join(unwanted)} is in use by {found}; it can go when it is idle")
    free = [instance for instance in there if instance.uuid and instance not in busy]
    refused: BadInput | None = None
    for candidates in ([*busy, *free], [*busy]):
        kept = _wanted(candidates, wish)
        missing = Counter(wish.counts) - Counter(instance.profile for instance in kept)
        try:
            return kept, card.arrange(missing, tuple(Placed(each.profile, each.start) for each in kept))
        except BadInput as problem:
            refused = problem
    if busy:
        found = ", ".join(_users_of(busy, using))
        raise NotYet(f"GPU {index}: {refused}; what stays is in use by {found}") from refused
    raise refused or BadInput(f"GPU {index} cannot be cut")


def _wanted(candidates: Sequence[MigInstance], wish: Wish) -> list[MigInstance]:
    """As many of each profile as are wanted, the first ones."""
    left, kept = Counter(wish.counts), []
    for instance in candidates:
        if left[instance.profile] > 0:
            left[instance.profile] -= 1
            kept.append(instance)
    return kept


async def _compare(maker: Maker, facts: GpuFacts, wish: Wish) -> None:
    now = await maker.facts(facts.uuid)
    instances = await maker.nvml.mig_instances(facts.uuid)
    if not is_cut(now, instances, wish):
        have = ", ".join(f"{each.profile} at {each.start}" for each in instances) or "no instance"
        raise NotYet(
            f"GPU {facts.index} was cut, but it has {have}, with MIG mode {'on' if now.mig_enabled else 'off'}"
        )


def _users_of(instances: Sequence[MigInstance], using: Users) -> list[str]:
    return list(dict.fromkeys(name for instance in instances for name in using.get(instance.uuid, ())))
