"""Why one GPU does not take one container: the rules of sharing, in the order in which they are asked.

Lasting causes come first: what no departure of another pod can change. Then a GPU that others keep in another mode, an
idle GPU for those that need one, a slot, a place for a MIG instance, memory, compute. The order decides which cause a
person reads, so each later cause means "nearly".
"""

from enum import IntEnum

from lamina.model.gpus import Mode
from lamina.model.ledger import NOTHING, Taken
from lamina.model.requests import ContainerRequest, Wishes
from lamina.placement.modes import accepted
from lamina.placement.nodes import GpuState


class Cause(IntEnum):
    """Why something does not fit, from the farthest miss to the nearest."""

    NO_GPU = 0
    UNHEALTHY = 1
    CORDONED = 2
    MODE = 3
    TYPE = 4
    UUID = 5
    NOT_ALLOWED = 6
    COUNT = 7
    PROFILE = 8
    SIZE = 9
    OTHER_MODE = 10
    HELD = 11
    NOT_IDLE = 12
    ISOLATION = 13
    SLOTS = 14
    PLACE = 15
    MEMORY = 16
    CORES = 17
    TIME = 18
    APART = 19
    MIXED = 20
    TOGETHER = 21

    @property
    def lasting(self) -> bool:
        """Whether the cause stays when other pods leave, so that preemption cannot help."""
        return self <= Cause.SIZE


def refusal(
    container: ContainerRequest,
    wishes: Wishes | None,
    state: GpuState,
    beside: Taken = NOTHING,
    total: Taken | None = None,
    mode: Mode | None = None,
) -> Cause | None:
    """The first rule by which the GPU refuses the container, or None where it takes it.

    `wishes` is None where the pod has none. `beside` is what containers of the same pod hold of this GPU while this
    one runs; `total` is what the pod would then hold of it at its peak, by default only this container's share. The
    GPU may take the container in any mode, or in `mode` alone; of several refusals the nearest counts.
    """
    gpu = state.gpu
    if not gpu.healthy:
        return Cause.UNHEALTHY
    if gpu.cordoned:
        return Cause.CORDONED
    if not gpu.by_grant:
        return Cause.MODE
    if wishes is not None and (unwanted := _unwanted(wishes, state)) is not None:
        return unwanted
    modes = accepted(state.modes, wishes)
    if not modes:
        return Cause.NOT_ALLOWED
    small = {each: _too_small(container, state, each) for each in modes}
    large_enough = [each for each in modes if small[each] is None]
    if not large_enough:
        return max(cause for cause in small.values() if cause is not None)
    nearest = Cause.OTHER_MODE
    for each in large_enough:
        if state.kept in (None, each) and mode in (None, each):
            rules = _cut_refusal if each is Mode.MIG else _shared_refusal
            refused = rules(container, wishes, state, beside, total)
            if refused is None:
                return None
            nearest = max(nearest, refused)
    return nearest


def _too_small(container: ContainerRequest, state: GpuState, mode: Mode) -> Cause | None:
    """Why even an idle GPU could not take the container in this mode."""
    if mode is Mode.MIG:
        assert state.room is not None, "a GPU without known layouts is never in the mode mig"
        return None if state.room.cut.holding(container) else Cause.PROFILE
    capacity = state.gpu.capacity_mib
    too_large = container.memory_on(capacity) > capacity or container.cores > state.gpu.cores_capacity
    return Cause.SIZE if too_large else None


def _cut_refusal(
    container: ContainerRequest, wishes: Wishes | None, state: GpuState, beside: Taken, total: Taken | None
) -> Cause | None:
    """For an instance of its own. Instances beside are the caller's to arrange."""
    if state.taken.whole or beside.whole:
        return Cause.NOT_IDLE if container.exclusive else Cause.HELD
    if state.busy and (container.exclusive or (wishes is not None and wishes.idle)):
        return Cause.NOT_IDLE
    if (1 if total is None else total.slots) > slots_for(container, state):
        return Cause.SLOTS
    assert state.room is not None, "a GPU without known layouts is never in the mode mig"
    return None if state.room.first(state.room.cut.holding(container)) else Cause.PLACE


def _shared_refusal(
    container: ContainerRequest, wishes: Wishes | None, state: GpuState, beside: Taken, total: Taken | None
) -> Cause | None:
    """For a share of a GPU that is not cut, or all of it."""
    memory, cores = container.memory_on(state.gpu.capacity_mib), container.cores
    alone = needs_alone(container, state)
    if state.taken.whole or beside.whole:
        return Cause.NOT_IDLE if alone else Cause.HELD
    if wishes is not None and wishes.idle and state.busy:
        return Cause.NOT_IDLE
    slots = 1
    if total is not None:
        slots, memory, cores = total.slots, total.memory_mib, total.cores
    if (alone and beside.slots) or (state.busy and (alone or (total is not None and total.whole))):
        return Cause.NOT_IDLE
    if _mixes_isolation(container, state.taken) or _mixes_isolation(container, beside):
        return Cause.ISOLATION
    if slots > slots_for(container, state):
        return Cause.SLOTS
    if memory > state.free_memory:
        return Cause.MEMORY
    if cores > state.free_cores:
        return Cause.CORES
    if container.cores == 0 and state.free_cores <= beside.cores:
        return Cause.TIME
    return None


def needs_alone(container: ContainerRequest, state: GpuState) -> bool:
    """Whether the container has the GPU to itself: a whole GPU, or all the time of one whose time is not scaled.

    Where its vocabulary says so, also nearly all of the memory.
    """
    if container.exclusive or container.cores == 100 == state.gpu.cores_capacity:
        return True
    left = state.gpu.capacity_mib - container.memory_on(state.gpu.capacity_mib)
    return left < container.sharing.alone_below_mib


def slots_for(container: ContainerRequest, state: GpuState) -> int:
    """How many more containers the GPU takes, by its own slots or by the rule of the container's vocabulary."""
    most = container.sharing.most
    return state.free_slots if most is None or state.taken.whole else max(0, most - state.taken.slots)


def _mixes_isolation(container: ContainerRequest, there: Taken) -> bool:
    """Whether a share with a part of the time would meet one without, and one of the two does not allow that."""
    if not container.sharing.one_isolation and not there.one_isolation:
        return False
    return there.without_cores if container.cores else there.cores > 0


def _unwanted(wishes: Wishes, state: GpuState) -> Cause | None:
    model = state.gpu.model.lower()
    if wishes.types and not any(part.lower() in model for part in wishes.types):
        return Cause.TYPE
    if any(part.lower() in model for part in wishes.not_types):
        return Cause.TYPE
    if wishes.uuids and state.gpu.uuid not in wishes.uuids:
        return Cause.UUID
    if state.gpu.uuid in wishes.not_uuids:
        return Cause.UUID
    return None
