"""The rules of `causes.refusal` for many GPUs at once, and for one container that is alone in its pod.

The order of the rules is the same; a property test holds the two together. Later assignments win, so the rules stand
here from the last to the first. Of the modes in which a GPU may take a share, the nearest refusal counts.
"""

import numpy as np
from numpy.typing import NDArray

from lamina.model.gpus import Mode
from lamina.model.requests import ContainerRequest, Wishes
from lamina.placement.causes import Cause
from lamina.placement.modes import accepted
from lamina.placement.table import Bools, Columns, Ints, NodeTable

Codes = NDArray[np.int8]
TAKES, ABSENT = 127, -1
_MOST = 1 << 62
"""More than any GPU has, and still a number of the columns."""


def codes(container: ContainerRequest, wishes: Wishes | None, table: NodeTable, columns: Columns) -> Codes:
    """A `Cause` for each cell, TAKES where the GPU takes the container, ABSENT where the node has no such GPU."""
    found = np.full(columns.capacity.shape, Cause.NOT_ALLOWED, np.int8)
    shares = _shared_codes(container, wishes, columns)
    ways = [(columns.may_share, columns.kept_cut, Cause.SIZE, shares)] if _accepts(wishes, Mode.QUOTA) else []
    if columns.cut.any() and _accepts(wishes, Mode.MIG):
        ways.append(
            (columns.may_cut, columns.kept_shared, Cause.PROFILE, _cut_codes(container, wishes, table, columns))
        )
    for may, _, small, here in ways:
        found = np.where(may & (here == small), np.maximum(found, small), found)
    for may, kept, small, here in ways:
        enough = may & (here != small)
        found = np.where(enough, np.maximum(found, np.where(kept, Cause.OTHER_MODE, here)), found)
    if wishes is not None:
        _unwanted(found, wishes, table, columns)
    found[~columns.by_grant] = Cause.MODE
    found[columns.cordoned] = Cause.CORDONED
    found[~columns.healthy] = Cause.UNHEALTHY
    found[~columns.present] = ABSENT
    return found


def _accepts(wishes: Wishes | None, mode: Mode) -> bool:
    return mode in accepted((mode,), wishes)


def _shared_codes(container: ContainerRequest, wishes: Wishes | None, columns: Columns) -> Codes:
    """For shares of GPUs that are not cut: SIZE where even an idle GPU is too small."""
    memory, cores = needed_memory(container, columns), min(container.cores, _MOST)
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
    idle = wishes is not None and wishes.idle
    found[columns.busy if idle else columns.busy & alone] = Cause.NOT_IDLE
    found[columns.whole & ~alone] = Cause.HELD
    found[(memory > columns.capacity) | (cores > columns.cores_capacity)] = Cause.SIZE
    return found


def _cut_codes(container: ContainerRequest, wishes: Wishes | None, table: NodeTable, columns: Columns) -> Codes:
    """For instances: PROFILE where no profile holds the request."""
    by_cut = np.array([cut.holding(container) if cut is not None else 0 for cut in table.cuts], np.int64)
    holding = by_cut[columns.cut]
    found = np.full(columns.capacity.shape, TAKES, np.int8)
    found[holding & columns.open == 0] = Cause.PLACE
    found[_no_slot(container, columns)] = Cause.SLOTS
    if container.exclusive or (wishes is not None and wishes.idle):
        found[columns.busy] = Cause.NOT_IDLE
    found[columns.whole] = Cause.NOT_IDLE if container.exclusive else Cause.HELD
    found[holding == 0] = Cause.PROFILE
    return found


def _no_slot(container: ContainerRequest, columns: Columns) -> Bools:
    most = container.sharing.most
    no_slot: Bools = columns.free_slots < 1 if most is None else columns.slots_taken >= most
    return no_slot


def needed_memory(container: ContainerRequest, columns: Columns) -> Ints:
    """`ContainerRequest.memory_on` for each cell."""
    if container.memory_mib is not None:
        return np.full(columns.capacity.shape, min(container.memory_mib, _MOST), np.int64)
    if container.memory_percent is None:
        raise ValueError(f"the request of {container.container} names neither memory nor a percentage")
    needed: Ints = np.maximum(1, columns.capacity * container.memory_percent // 100)
    return needed


def _mixes_isolation(container: ContainerRequest, columns: Columns) -> Bools:
    others = columns.without_cores if container.cores else columns.with_cores
    return others if container.sharing.one_isolation else others & columns.one_isolation


def _unwanted(found: Codes, wishes: Wishes, table: NodeTable, columns: Columns) -> None:
    if wishes.not_uuids:
        found[_among(wishes.not_uuids, table.uuids, columns.uuid)] = Cause.UUID
    if wishes.uuids:
        found[~_among(wishes.uuids, table.uuids, columns.uuid)] = Cause.UUID
    if wishes.not_types:
        found[_named(wishes.not_types, table.models)[columns.model]] = Cause.TYPE
    if wishes.types:
        found[~_named(wishes.types, table.models)[columns.model]] = Cause.TYPE


def _among(names: tuple[str, ...], numbers: dict[str, int], column: Ints) -> Bools:
    return np.isin(column, [numbers[name] for name in names if name in numbers])


def _named(parts: tuple[str, ...], models: dict[str, int]) -> Bools:
    """By number of the model: whether its name contains one of the parts."""
    return np.array([any(part.lower() in model.lower() for part in parts) for model in models], np.bool_)
