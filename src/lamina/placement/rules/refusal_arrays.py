"""The rules of `causes.refusal` for many GPUs at once, and for one container that is alone in its pod.

The order of the rules is the same; a property test holds the two together. Later assignments win, so the rules stand
here from the last to the first. Of the modes in which a GPU may take a share, the nearest refusal counts.
"""

import numpy as np
from numpy.typing import NDArray

from lamina.core.gpus import Mode
from lamina.core.quota_room import QuotaRoom
from lamina.core.requests import ContainerRequest, GpuSelector
from lamina.placement.rules.refusal import Cause
from lamina.placement.state.modes import MODES, accepted
from lamina.placement.state.table import Bools, Columns, Ints, NodeTable

Codes = NDArray[np.int8]
TAKES, ABSENT = 127, -1
_MAX_AMOUNT = 1 << 62
"""More than any GPU has, and still a number of the columns."""


def codes(container: ContainerRequest, selector: GpuSelector | None, table: NodeTable, columns: Columns) -> Codes:
    """A `Cause` for each cell, TAKES where the GPU takes the container, ABSENT where the node has no such GPU."""
    found = np.full(columns.capacity.shape, Cause.NOT_ALLOWED, np.int8)
    by_mode = _codes_by_mode(container, selector, table, columns)
    for mode, here in by_mode.items():
        found = np.where(columns.may(mode) & (here <= Cause.QUOTA), np.maximum(found, here), found)
    for mode, here in by_mode.items():
        enough, kept = columns.may(mode) & (here > Cause.QUOTA), columns.kept_in_another(mode)
        found = np.where(enough, np.maximum(found, np.where(kept, Cause.OTHER_MODE, here)), found)
    if selector is not None:
        _unwanted(found, selector, table, columns)
    found[~columns.by_grant] = Cause.MODE
    found[columns.cordoned] = Cause.CORDONED
    found[~columns.healthy] = Cause.UNHEALTHY
    found[~columns.present] = ABSENT
    return found


def _codes_by_mode(
    container: ContainerRequest, selector: GpuSelector | None, table: NodeTable, columns: Columns
) -> dict[Mode, Codes]:
    """For each mode that the pod accepts and a GPU may be in, as if all GPUs could be in it: ONE_GPU, PROFILE, SIZE
    or QUOTA where even an idle GPU does not do."""
    found: dict[Mode, Codes] = {}
    modes = [mode for mode in accepted(MODES, selector) if columns.may(mode).any()]
    if Mode.QUOTA in modes or Mode.MPS in modes:
        shares = _shared_codes(container, selector, columns)
        found = dict.fromkeys((mode for mode in modes if mode is not Mode.MIG), shares)
    if Mode.MPS in modes and container.count > 1:
        found[Mode.MPS] = np.full(columns.capacity.shape, Cause.ONE_GPU, np.int8)
    if Mode.MIG in modes:
        found[Mode.MIG] = _partition_codes(container, selector, table, columns)
    return found


def _shared_codes(container: ContainerRequest, selector: GpuSelector | None, columns: Columns) -> Codes:
    """For shares of GPUs that are not partitioned: SIZE where even an idle GPU is too small, QUOTA where quotas leave
    too little."""
    memory, cores = needed_memory(container, columns), min(container.cores, _MAX_AMOUNT)
    alone = columns.capacity - memory < container.sharing.alone_below_mib
    if container.exclusive:
        alone[:] = True
    if container.cores == 100:
        alone |= columns.cores_capacity == 100
    found = np.full(columns.capacity.shape, TAKES, np.int8)
    if container.cores == 0:
        found[columns.free_cores <= 0] = Cause.TIME
    found[cores > columns.free_cores] = Cause.CORES
    found[memory > columns.free_memory] = Cause.MEMORY
    found[_no_slot(container, columns)] = Cause.SLOTS
    found[_mixes_isolation(container, columns)] = Cause.ISOLATION
    idle = selector is not None and selector.idle
    found[columns.busy if idle else columns.busy & alone] = Cause.NOT_IDLE
    found[columns.whole & ~alone] = Cause.HELD
    if container.room is not None:
        found[_beyond_quotas(container, container.room, memory, alone, columns)] = Cause.QUOTA
    found[(memory > columns.capacity) | (cores > columns.cores_capacity)] = Cause.SIZE
    return found


def _beyond_quotas(container: ContainerRequest, room: QuotaRoom, memory: Ints, alone: Bools, columns: Columns) -> Bools:
    """Where `room` does not take the share. No column has more than `_MAX_AMOUNT`."""
    beyond = np.full(memory.shape, not room.takes(0, container.cores), np.bool_)
    if room.memory is not None:
        counted = np.minimum(memory, columns.memory) if container.whole else memory
        if container.sharing.alone_below_mib:  # as `held_memory` has it
            counted = np.where(alone, np.maximum(counted, np.minimum(columns.memory, columns.capacity)), counted)
        beyond |= (counted > 0) & (counted > min(room.memory.left, _MAX_AMOUNT - 1))
    return beyond


def _partition_codes(
    container: ContainerRequest, selector: GpuSelector | None, table: NodeTable, columns: Columns
) -> Codes:
    """For instances: PROFILE where no profile holds the request, QUOTA where quotas allow none that does."""
    schemes = [(s.holding(container), s.holding_beyond_quotas(container)) if s else (0, 0) for s in table.schemes]
    by_scheme, beyond_quotas = np.array(schemes, np.int64).T
    holding = by_scheme[columns.scheme]
    found = np.full(columns.capacity.shape, TAKES, np.int8)
    found[holding & columns.open == 0] = Cause.PLACE
    found[_no_slot(container, columns)] = Cause.SLOTS
    if container.exclusive or (selector is not None and selector.idle):
        found[columns.busy] = Cause.NOT_IDLE
    found[columns.whole] = Cause.NOT_IDLE if container.exclusive else Cause.HELD
    found[holding == 0] = Cause.QUOTA
    found[beyond_quotas[columns.scheme] == 0] = Cause.PROFILE
    return found


def _no_slot(container: ContainerRequest, columns: Columns) -> Bools:
    most = container.sharing.most
    no_slot: Bools = columns.free_slots < 1 if most is None else columns.slots_taken >= most
    return no_slot


def needed_memory(container: ContainerRequest, columns: Columns) -> Ints:
    """`ContainerRequest.memory_on` for each cell."""
    if container.memory_mib is not None:
        return np.full(columns.capacity.shape, min(container.memory_mib, _MAX_AMOUNT), np.int64)
    if container.memory_percent is None:
        raise ValueError(f"the request of {container.container} names neither memory nor a percentage")
    needed: Ints = np.maximum(1, columns.capacity * container.memory_percent // 100)
    return needed


def _mixes_isolation(container: ContainerRequest, columns: Columns) -> Bools:
    others = columns.without_cores if container.cores else columns.with_cores
    return others if container.sharing.one_isolation else others & columns.one_isolation


def _unwanted(found: Codes, selector: GpuSelector, table: NodeTable, columns: Columns) -> None:
    if selector.not_uuids:
        found[_among(selector.not_uuids, table.uuids, columns.uuid)] = Cause.UUID
    if selector.uuids:
        found[~_among(selector.uuids, table.uuids, columns.uuid)] = Cause.UUID
    if selector.types or selector.not_types:
        accepted = np.array([selector.accepts(model) for model in table.models], np.bool_)
        found[~accepted[columns.model]] = Cause.TYPE


def _among(names: tuple[str, ...], numbers: dict[str, int], column: Ints) -> Bools:
    return np.isin(column, [numbers[name] for name in names if name in numbers])
