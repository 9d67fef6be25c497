"""Why one GPU does not take one container: the rules of sharing, in the order of their evaluation.

Lasting causes come first: those that remain when other pods leave, and what quotas leave. Then a GPU in another mode,
an idle GPU for requests that need one, a slot, a place for a MIG instance, memory, compute. The order decides which
cause is reported, so a later cause is a nearer miss.
"""

from enum import IntEnum

from lamina.core.gpus import Mode
from lamina.core.ledger import NOTHING, Taken
from lamina.core.requests import ContainerRequest, GpuSelector
from lamina.placement.state.modes import accepted, mode_of_all
from lamina.placement.state.nodes import GpuState


class Cause(IntEnum):
    """Why something does not fit, from the farthest miss to the nearest."""

    UNSCHEDULABLE = -3
    TAINTED = -2
    NOT_SELECTED = -1
    NO_GPU = 0
    UNHEALTHY = 1
    CORDONED = 2
    MODE = 3
    TYPE = 4
    UUID = 5
    NOT_ALLOWED = 6
    COUNT = 7
    ONE_GPU = 8
    PROFILE = 9
    SIZE = 10
    QUOTA = 11
    OTHER_MODE = 12
    HELD = 13
    NOT_IDLE = 14
    ISOLATION = 15
    SLOTS = 16
    PLACE = 17
    MEMORY = 18
    CORES = 19
    TIME = 20
    APART = 21
    MIXED = 22
    TOGETHER = 23
    HOST = 24

    @property
    def word(self) -> str:
        """What programs read, such as not-selected."""
        return self.name.lower().replace("_", "-")

    @property
    def lasting(self) -> bool:
        """Whether the cause stays when other pods leave, so that preemption cannot help.

        What quotas leave stays too: no pod is evicted so that its namespace may use more.
        """
        return self <= Cause.QUOTA


def refusal(
    container: ContainerRequest,
    selector: GpuSelector | None,
    state: GpuState,
    pod_holds: Taken = NOTHING,
    total: Taken | None = None,
    mode: Mode | None = None,
) -> Cause | None:
    """The first rule by which the GPU refuses the container, or None where it takes it.

    `selector` is None where the pod has none. `pod_holds` is what containers of the same pod hold of this GPU while
    this one runs; `total` is what the pod would then hold of it at its peak, by default only this container's share.
    The GPU may take the container in any mode, or in `mode` alone; of several refusals the nearest counts.
    """
    if (unusable := _unusable(state)) is not None:
        return unusable
    if selector is not None and (unwanted := _unwanted(selector, state)) is not None:
        return unwanted
    modes = accepted(state.modes, selector)
    if not modes:
        return Cause.NOT_ALLOWED
    small = {each: _too_small(container, state, each) for each in modes}
    large_enough = [each for each in modes if small[each] is None]
    if not large_enough:
        return max(cause for cause in small.values() if cause is not None)
    nearest = Cause.OTHER_MODE
    for each in large_enough:
        if state.kept in (None, each) and mode in (None, each):
            rules = _instance_refusal if each is Mode.MIG else _shared_refusal
            refused = rules(container, selector, state, pod_holds, total)
            if refused is None:
                return None
            nearest = max(nearest, refused)
    return nearest


def refusal_of_shares(shares: Taken, state: GpuState) -> Cause | None:
    """The first rule by which the GPU refuses shares that are chosen already, or None where it takes them.

    `shares` are all that one pod is to hold of the GPU, which `state` leaves out. The rules, their order and their
    causes are those of `refusal`, with two differences: MIG instances need their own place and not any, and a share
    without cores keeps its place when other pods have been granted the rest of the time.
    """
    if (unusable := _unusable(state)) is not None:
        return unusable
    mode = mode_of_all(shares)
    if mode not in state.modes:
        return Cause.NOT_ALLOWED
    gpu = state.gpu
    if mode is not Mode.MIG and (shares.memory_mib > gpu.capacity_mib or shares.cores > gpu.cores_capacity):
        return Cause.SIZE
    if state.kept not in (None, mode):
        return Cause.OTHER_MODE
    if state.taken.whole:
        return Cause.NOT_IDLE if shares.whole else Cause.HELD
    if shares.whole and state.busy:
        return Cause.NOT_IDLE
    if mode is not Mode.MIG and _mix_isolation(shares, state.taken):
        return Cause.ISOLATION
    if shares.slots > _slots_left(shares.most, state):
        return Cause.SLOTS
    if mode is Mode.MIG:
        assert state.partitions is not None, "a GPU without known layouts is never in the mode mig"
        return Cause.PLACE if state.partitions.conflict(shares.instances) else None
    if shares.memory_mib > state.free_memory:
        return Cause.MEMORY
    if shares.cores > state.free_cores:
        return Cause.CORES
    return None


def _unusable(state: GpuState) -> Cause | None:
    """Why the GPU takes no new share of any kind."""
    if not state.gpu.healthy:
        return Cause.UNHEALTHY
    if state.gpu.cordoned:
        return Cause.CORDONED
    return None if state.gpu.by_grant else Cause.MODE


def _too_small(container: ContainerRequest, state: GpuState, mode: Mode) -> Cause | None:
    """Why even an idle GPU could not take the container in this mode."""
    if mode is Mode.MIG:
        assert state.partitions is not None, "a GPU without known layouts is never in the mode mig"
        scheme = state.partitions.scheme
        if scheme.holding(container):
            return None
        return Cause.QUOTA if scheme.holding_beyond_quotas(container) else Cause.PROFILE
    if mode is Mode.MPS and container.count > 1:
        return Cause.ONE_GPU
    capacity = state.gpu.capacity_mib
    if container.memory_on(capacity) > capacity or container.cores > state.gpu.cores_capacity:
        return Cause.SIZE
    room = container.room
    return None if room is None or room.takes(held_memory(container, state), container.cores) else Cause.QUOTA


def _instance_refusal(
    container: ContainerRequest, selector: GpuSelector | None, state: GpuState, pod_holds: Taken, total: Taken | None
) -> Cause | None:
    """For a MIG instance. The caller arranges it with other instances of the pod."""
    if state.taken.whole or pod_holds.whole:
        return Cause.NOT_IDLE if container.exclusive else Cause.HELD
    if state.busy and (container.exclusive or (selector is not None and selector.idle)):
        return Cause.NOT_IDLE
    if (1 if total is None else total.slots) > slots_for(container, state):
        return Cause.SLOTS
    assert state.partitions is not None, "a GPU without known layouts is never in the mode mig"
    return None if state.partitions.first(state.partitions.scheme.holding(container)) else Cause.PLACE


def _shared_refusal(
    container: ContainerRequest, selector: GpuSelector | None, state: GpuState, pod_holds: Taken, total: Taken | None
) -> Cause | None:
    """For a share of a GPU that is not partitioned, or all of it."""
    memory, cores = container.memory_on(state.gpu.capacity_mib), container.cores
    alone = needs_alone(container, state)
    if state.taken.whole or pod_holds.whole:
        return Cause.NOT_IDLE if alone else Cause.HELD
    if selector is not None and selector.idle and state.busy:
        return Cause.NOT_IDLE
    slots = 1
    if total is not None:
        slots, memory, cores = total.slots, total.memory_mib, total.cores
    if (alone and pod_holds.slots) or (state.busy and (alone or (total is not None and total.whole))):
        return Cause.NOT_IDLE
    if _mixes_isolation(container, state.taken) or _mixes_isolation(container, pod_holds):
        return Cause.ISOLATION
    if slots > slots_for(container, state):
        return Cause.SLOTS
    if memory > state.free_memory:
        return Cause.MEMORY
    if cores > state.free_cores:
        return Cause.CORES
    if container.cores == 0 and state.free_cores <= pod_holds.cores:
        return Cause.TIME
    return None


def needs_alone(container: ContainerRequest, state: GpuState) -> bool:
    """Whether the container has the GPU to itself: a whole GPU, or all the time of one whose time is not scaled.

    Where its dialect says so, also nearly all of the memory.
    """
    if container.exclusive or container.cores == 100 == state.gpu.cores_capacity:
        return True
    left = state.gpu.capacity_mib - container.memory_on(state.gpu.capacity_mib)
    return left < container.sharing.alone_below_mib


def held_memory(container: ContainerRequest, state: GpuState) -> int:
    """MiB of the GPU that the container gets, if it is not partitioned, and that count as its share."""
    gpu = state.gpu
    counted = container.counted_on(gpu.memory_mib, gpu.capacity_mib)
    entire = container.sharing.alone_below_mib and needs_alone(container, state)
    return max(counted, min(gpu.memory_mib, gpu.capacity_mib)) if entire else counted


def slots_for(container: ContainerRequest, state: GpuState) -> int:
    """How many more containers the GPU takes, by its own slots or by the rule of the container's dialect."""
    return _slots_left(container.sharing.most or 0, state)


def _slots_left(most: int, state: GpuState) -> int:
    """`most` is how many containers the new one allows on the GPU, 0 where the GPU's own slots are the limit."""
    return state.free_slots if not most or state.taken.whole else max(0, most - state.taken.slots)


def _mixes_isolation(container: ContainerRequest, present: Taken) -> bool:
    """Whether a share with a part of the time would meet one without, and one of the two does not allow that."""
    if not container.sharing.one_isolation and not present.one_isolation:
        return False
    return present.without_cores if container.cores else present.cores > 0


def _mix_isolation(shares: Taken, present: Taken) -> bool:
    """As `_mixes_isolation`, for all shares of a pod."""
    if not shares.one_isolation and not present.one_isolation:
        return False
    return (shares.cores > 0 and present.without_cores) or (shares.without_cores and present.cores > 0)


def _unwanted(selector: GpuSelector, state: GpuState) -> Cause | None:
    if not selector.accepts(state.gpu.model):
        return Cause.TYPE
    if selector.uuids and state.gpu.uuid not in selector.uuids:
        return Cause.UUID
    if state.gpu.uuid in selector.not_uuids:
        return Cause.UUID
    return None
