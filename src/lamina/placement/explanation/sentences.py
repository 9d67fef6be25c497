"""The sentences of a misfit: for each cause, what is missing on a group of GPUs, in numbers that hold for the group."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lamina.core.gpus import Mode
from lamina.core.ledger import Taken
from lamina.core.quota_room import QuotaRoom
from lamina.core.requests import ContainerRequest, GpuSelector, SharingRules
from lamina.placement.rules.refusal import Cause, held_memory
from lamina.placement.state.modes import mode_of_all
from lamina.placement.state.nodes import GpuState


class Numbers(NamedTuple):
    """What was needed and the most that was available. `unit` is MiB, %, GPUs, slots or places."""

    needed: int
    available: int
    unit: str


def numbers(cause: Cause, container: ContainerRequest, group: Sequence[GpuState]) -> Numbers:
    """The numbers of that GPU of `group`, all refused for `cause`, which misses by the least."""
    if cause is Cause.SIZE:
        pairs = [(container.memory_on(s.gpu.capacity_mib), s.gpu.capacity_mib) for s in group]
        if all(needed <= there for needed, there in pairs):
            return Numbers(container.cores, max(s.gpu.cores_capacity for s in group), "%")
        return Numbers(*min(pairs, key=lambda pair: pair[0] - pair[1]), "MiB")
    if cause is Cause.MEMORY:
        pairs = [(container.memory_on(s.gpu.capacity_mib), s.free_memory) for s in group]
        return Numbers(*min(pairs, key=lambda pair: pair[0] - pair[1]), "MiB")
    if cause is Cause.CORES:
        return Numbers(container.cores, max(s.free_cores for s in group), "%")
    if cause is Cause.QUOTA and container.room is not None:
        return numbers_of_quota(container.room, _least(container, container.room, group))
    if cause is Cause.SLOTS:
        return Numbers(1, 0, "slots")
    if cause is Cause.PROFILE:
        return _largest(container, group)
    if cause is Cause.PLACE:
        return Numbers(1, 0, "places")
    return Numbers(container.count, 0, "GPUs")


def numbers_of_quota(room: QuotaRoom, amounts: tuple[int, int]) -> Numbers:
    """By how much these MiB and percent exceed a quota."""
    memory_mib, cores = amounts
    if room.memory is not None and memory_mib > room.memory.left:
        return Numbers(memory_mib, room.memory.left, "MiB")
    return Numbers(cores, room.cores.left if room.cores else 0, "%")


def _least(container: ContainerRequest, room: QuotaRoom, group: Sequence[GpuState]) -> tuple[int, int]:
    """The least MiB and percent, of those that quotas do not allow, to which a share of one of the GPUs comes."""
    found = []
    for state in group:
        if state.modes != (Mode.MIG,):
            found.append((held_memory(container, state), container.cores))
        if state.partitions is not None:
            scheme = state.partitions.scheme
            if holding := scheme.holding_beyond_quotas(container):
                profile = scheme.smallest(holding)
                found.append((profile.holds_mib, scheme.card.cores(profile)))
    return min(each for each in found if not room.takes(*each))


class RefusedGpus(NamedTuple):
    """GPUs that refused a container for one cause. `all_of_node` says that the node has no others."""

    cause: Cause
    container: ContainerRequest
    selector: GpuSelector
    group: Sequence[GpuState]
    all_of_node: bool
    known_gpu: bool = False
    """Whether the reader knows which GPU is meant, so that it is not called the best of several."""

    @property
    def several(self) -> bool:
        return len(self.group) > 1

    @property
    def numbers(self) -> Numbers:
        return numbers(self.cause, self.container, self.group)

    def named(self, superlative: str) -> str:
        """The GPU that lacks least, such as `the best GPU`."""
        if self.known_gpu:
            return "the GPU"
        return f"the {superlative} GPU" if self.all_of_node else f"the {superlative} of them"


def sentence_of_shares(cause: Cause, shares: Taken, state: GpuState) -> str:
    """Why the GPU refuses shares that are chosen already, see `refusal.refusal_of_shares`."""
    if cause is Cause.PLACE and state.partitions is not None:
        return f"no place on the GPU for a MIG instance: {state.partitions.conflict(shares.instances)}"
    needs = ContainerRequest(
        container="",
        count=1,
        memory_mib=shares.memory_mib,
        cores=shares.cores,
        exclusive=shares.whole,
        sharing=SharingRules(most=shares.most or None, one_isolation=shares.one_isolation),
    )
    accepted = GpuSelector(modes=(mode_of_all(shares),))
    return sentence(RefusedGpus(cause, needs, accepted, [state], all_of_node=True, known_gpu=True))


def sentence(refused: RefusedGpus) -> str:
    """What is missing on these GPUs."""
    return _SENTENCES[refused.cause](refused)


def _unhealthy(refused: RefusedGpus) -> str:
    reasons = ", ".join(sorted({state.gpu.reason for state in refused.group if state.gpu.reason}))
    return f"no healthy GPU ({reasons})" if reasons else "no healthy GPU"


def _cordoned(refused: RefusedGpus) -> str:
    return f"all {len(refused.group)} GPUs are cordoned" if refused.several else "the GPU is cordoned"


def _uuid(refused: RefusedGpus) -> str:
    if refused.selector.uuids:
        return f"not among the GPUs that the pod names ({', '.join(refused.selector.uuids)})"
    return "excluded by the pod's list of UUIDs"


def _size(refused: RefusedGpus) -> str:
    needed, available, unit = refused.numbers
    if unit == "%":
        return f"needs {needed} % of a GPU's time; at most {available} % can be granted"
    return f"needs {needed} MiB; {refused.named('largest')} has {available} MiB"


def _quota(refused: RefusedGpus) -> str:
    container = refused.container
    room = container.room
    return "" if room is None else room.excess(*_least(container, room, refused.group))


def _held(refused: RefusedGpus) -> str:
    if refused.several:
        return f"all {len(refused.group)} GPUs are held whole by others"
    return "the GPU is held whole by another pod"


def _not_idle(refused: RefusedGpus) -> str:
    kind = "idle" if refused.selector.idle and not refused.container.exclusive else "whole"
    state = f"none of {len(refused.group)} is idle" if refused.several else "it is not idle"
    return f"{kind} GPU needed; {state}"


def _isolation(refused: RefusedGpus) -> str:
    gpu = "each GPU is" if refused.several else "the GPU is"
    return f"{gpu} shared by containers {'without' if refused.container.cores else 'with'} a share of its time"


def _memory(refused: RefusedGpus) -> str:
    needed, available, _ = refused.numbers
    return f"needs {needed} MiB; {refused.named('best')} has {available} MiB free"


def _cores(refused: RefusedGpus) -> str:
    needed, available, _ = refused.numbers
    return f"needs {needed} % of a GPU's time; the most free is {available} %"


def _time(refused: RefusedGpus) -> str:
    gpu = "each GPU's" if refused.several else "the GPU's"
    return f"{gpu} compute is fully allocated; a container without a compute limit would get no time"


def _mode(refused: RefusedGpus) -> str:
    """How the GPUs are allocated instead, or what keeps them from being shared."""
    group = refused.group
    native = sorted({state.gpu.native_resource for state in group if state.gpu.native_resource})
    if native:
        return f"this node offers its GPUs only as {', '.join(native)}, without shares of memory or compute"
    claimed = [state for state in group if state.claimed]
    modes = sorted({state.gpu.mode.value for state in group if state.gpu.mode is not None and not state.claimed})
    if not claimed:
        return f"running pods use the GPU by {', '.join(modes)}; it can be shared when they have ended"
    if not modes:
        gpu = "each GPU" if refused.several else "the GPU"
        return f"ResourceClaims hold {gpu}; it can be shared when their pods have ended"
    return (
        f"ResourceClaims hold {len(claimed)} of {len(group)} GPUs, and running pods use the others by "
        f"{', '.join(modes)}; they can be shared when these pods have ended"
    )


def _not_allowed(refused: RefusedGpus) -> str:
    allowed = sorted({mode.value for state in refused.group for mode in state.modes}) or ["no available mode"]
    accepted = " or ".join(sorted(refused.selector.modes))
    return f"the pod accepts the mode {accepted}; this node allows {', '.join(allowed)}"


def _other_mode(refused: RefusedGpus) -> str:
    """What keeps the GPUs from the mode in which they could serve the request."""
    modes = sorted({state.kept.value for state in refused.group if state.kept is not None})
    gpu, end = ("each GPU", "one of them is idle") if refused.several else ("the GPU", "it is idle")
    return f"pods keep {gpu} in the mode {', '.join(modes)}; another mode is possible when {end}"


def _one_gpu(refused: RefusedGpus) -> str:
    return f"in the mode mps a container can have one GPU; it requests {refused.container.count}"


def _largest(container: ContainerRequest, group: Sequence[GpuState]) -> Numbers:
    """What the request needs and what the largest profile has; in memory where that is what it lacks."""
    schemes = [state.partitions.scheme for state in group if state.partitions is not None]
    memory = max(profile.holds_mib for scheme in schemes for profile in scheme.profiles)
    if container.memory_mib is not None and container.memory_mib > memory:
        return Numbers(container.memory_mib, memory, "MiB")
    cores = max(scheme.card.cores(profile) for scheme in schemes for profile in scheme.profiles)
    if container.cores > cores:
        return Numbers(container.cores, cores, "%")
    slices = max(100 * profile.size // scheme.card.slices for scheme in schemes for profile in scheme.profiles)
    return Numbers(100 if container.exclusive else container.memory_percent or 0, slices, "% of the GPU")


def _profile(refused: RefusedGpus) -> str:
    needed, there, unit = refused.numbers
    largest = sorted(
        {state.partitions.scheme.profiles[-1].name for state in refused.group if state.partitions is not None}
    )
    return f"needs {needed} {unit}; the largest MIG profile, {' or '.join(largest)}, has {there} {unit}"


def _place(refused: RefusedGpus) -> str:
    container, group = refused.container, refused.group
    schemes = {state.partitions.scheme for state in group if state.partitions is not None}
    names = sorted({scheme.smallest(scheme.holding(container)).name for scheme in schemes})
    where = f"any of {len(group)} GPUs" if len(group) > 1 else "the GPU"
    return f"no place on {where} for a MIG instance of {' or '.join(names)}, or a larger one, next to those in use"


def _type(refused: RefusedGpus) -> str:
    selector, has = refused.selector, "this node has" if refused.all_of_node else "these are"
    wanted = f" of type {' or '.join(selector.types)}" if selector.types else ""
    excluded = f" outside the excluded type {' or '.join(selector.not_types)}" if selector.not_types else ""
    models = ", ".join(sorted({state.gpu.model for state in refused.group}))
    return f"no GPU{wanted}{excluded}; {has} {models}"


def _slots(refused: RefusedGpus) -> str:
    container, group = refused.container, refused.group
    if container.sharing.most is not None:
        return (
            f"{'each GPU is' if len(group) > 1 else 'the GPU is'} shared by {container.sharing.most} containers already"
        )
    slots = {state.gpu.slots for state in group}
    if len(slots) > 1:
        return f"all {sum(state.gpu.slots for state in group)} slots of {len(group)} GPUs are taken"
    return f"all {slots.pop()} slots{' of each GPU' if len(group) > 1 else ''} are taken"


_SENTENCES: dict[Cause, Callable[[RefusedGpus], str]] = {
    Cause.UNHEALTHY: _unhealthy,
    Cause.CORDONED: _cordoned,
    Cause.MODE: _mode,
    Cause.TYPE: _type,
    Cause.UUID: _uuid,
    Cause.NOT_ALLOWED: _not_allowed,
    Cause.ONE_GPU: _one_gpu,
    Cause.PROFILE: _profile,
    Cause.SIZE: _size,
    Cause.QUOTA: _quota,
    Cause.OTHER_MODE: _other_mode,
    Cause.HELD: _held,
    Cause.NOT_IDLE: _not_idle,
    Cause.ISOLATION: _isolation,
    Cause.SLOTS: _slots,
    Cause.PLACE: _place,
    Cause.MEMORY: _memory,
    Cause.CORES: _cores,
    Cause.TIME: _time,
}
"""By the cause of one GPU. The other causes concern a node or a whole pod; `misfit` has their sentences."""
