"""Where pods of one kind fit, over all nodes, kept up to date: only nodes that changed are asked again.

The rules run over columns. What a column cannot say is asked of `fit` itself: pods whose containers have to be
arranged together, or whose GPUs must be on one NUMA node or in one mode. Sentences are `Misfit`'s, made once for
all nodes about which they say the same.
"""

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from lamina.core.grants import ComputePolicy
from lamina.core.requests import GpuSelector, PodRequest
from lamina.placement.explanation.misfit import Misfit
from lamina.placement.explanation.summary import Miss, miss_of
from lamina.placement.rules.refusal import Cause
from lamina.placement.rules.refusal_arrays import ABSENT, TAKES, Codes, codes
from lamina.placement.search.fit import PodPlacement, fit
from lamina.placement.state.nodes import NodeState
from lamina.placement.state.table import Columns, Ints, NodeTable

FITS, NO_NODE = 0, -1
_MAX_MISSES = 20_000
_NO_WISHES = GpuSelector()
_NO_MISS = Miss("", Cause.NO_GPU, False, (0, 0, 0.0))


def alike(request: PodRequest) -> PodRequest:
    """The request without what makes no difference to where it fits: requests that are equal then fit alike."""
    containers = request.containers
    gpu_policy = request.gpu_policy
    if len(containers) == 1:
        [only] = containers
        containers = (
            msgspec.structs.replace(
                only, container="", priority=None, init=False, sidecar=False, most_cores=0, most_memory_mib=0
            ),
        )
        gpu_policy = ""
    return msgspec.structs.replace(
        request,
        dialect="",
        containers=containers,
        node_policy="",
        gpu_policy=gpu_policy,
        compute_policy=ComputePolicy.NONE,
    )


class Survey:
    """The answers for one request over one table. Call `refresh` before reading."""

    def __init__(self, request: PodRequest, table: NodeTable) -> None:
        self._request = request
        self._wishes = None if request.selector == _NO_WISHES else request.selector
        self._table = table
        self._stamp, self._numbering = 0, table.numbering
        self._verdicts: NDArray[np.int32] = np.zeros(1, np.int32)
        self.misses: list[Miss] = [_NO_MISS]
        self._numbers: dict[bytes, int] = {}

    def refresh(self) -> None:
        """Ask again where something was written since the last time."""
        table = self._table
        if len(self._numbers) > _MAX_MISSES or self._numbering != table.numbering:
            self._stamp, self.misses, self._numbering = 0, [_NO_MISS], table.numbering
            self._numbers.clear()
        if len(self._verdicts) < len(table.stamps):
            more = np.full(len(table.stamps) - len(self._verdicts), NO_NODE, np.int32)
            self._verdicts = np.concatenate([self._verdicts, more])
        rows = table.since(self._stamp)
        self._stamp = table.stamp
        if rows.size:
            self._ask(rows)

    def verdicts_on(self, rows: Ints) -> NDArray[np.int32]:
        """By row of `rows`: FITS, NO_NODE (for the row -1 too), or the number of a miss in `misses`."""
        return np.where(rows < 0, np.int32(NO_NODE), self._verdicts[rows])

    def _ask(self, rows: Ints) -> None:
        table = self._table
        self._verdicts[rows] = NO_NODE
        rows = rows[table.kinds[rows] >= 0]
        columns = table.columns(rows)
        found = []
        for index, container in enumerate(self._request.containers):
            here = codes(container, self._wishes, table, columns)
            found.append(here)
            fits = np.count_nonzero(here == TAKES, axis=1) >= container.count
            missed = np.flatnonzero(~fits)
            self._note_misses(index, rows[missed], Columns(columns.cells[:, missed]), here[missed])
            rows, columns = rows[fits], Columns(columns.cells[:, fits])
            found = [each[fits] for each in found]
        several = len(found) > 1 or self._request.numa_bind
        several = several or (self._request.room is not None and self._request.containers[0].count > 1)
        if not several and (self._request.containers[0].count == 1 or not columns.scheme.any()):
            self._verdicts[rows] = FITS
        elif rows.size:
            self._arrange(rows, columns, found)

    def _note_misses(self, index: int, rows: Ints, columns: Columns, found: Codes) -> None:
        """Number the misses. The key of a miss holds all that its sentence may depend on."""
        if not rows.size:
            return
        kinds = self._table.kinds[rows]
        uniform = np.array(self._table.uniform, np.bool_)[kinds]
        short = np.where(uniform[:, None], np.sort(found, axis=1), found)
        memory = _best(columns.free_memory, found == Cause.MEMORY, uniform)
        cores = _best(columns.free_cores, found == Cause.CORES, uniform)
        keys = _keys(index, kinds, short, memory, cores)
        container = self._request.containers[index]

        def misfit(place: int) -> Misfit:
            refusals = tuple([None if c == TAKES else Cause(c) for c in found[place].tolist() if c != ABSENT])
            return Misfit(
                self._state(rows, place), container, self._request.selector, refusals, self._request.containers
            )

        self._number(rows, keys, misfit)

    def _arrange(self, rows: Ints, columns: Columns, found: list[Codes]) -> None:
        """Ask `fit` for pods whose containers fit one by one, once for equal nodes."""
        without_uuids = np.delete(columns.cells, 6, axis=0)
        cells = np.moveaxis(without_uuids, 0, 1).reshape(len(rows), -1)
        keys = _keys(len(found), self._table.kinds[rows], np.concatenate(found, axis=1), cells)

        def misfit(place: int) -> Misfit | None:
            answer = fit(self._request, self._state(rows, place))
            return None if isinstance(answer, PodPlacement) else answer

        self._number(rows, keys, misfit)

    def _number(self, rows: Ints, keys: list[bytes], misfit: Callable[[int], Misfit | None]) -> None:
        """Give each row the number of its key; `misfit` says of a place among the rows what a new key stands for."""
        for place, key in enumerate(keys):
            if key not in self._numbers:
                missed = misfit(place)
                self._numbers[key] = FITS if missed is None else len(self.misses)
                if missed is not None:
                    self.misses.append(miss_of(missed))
        self._verdicts[rows] = [self._numbers[key] for key in keys]

    def _state(self, rows: Ints, place: int) -> NodeState:
        state = self._table.states[int(rows[place])]
        assert state is not None, "a row with a kind has a node"
        return state


def _best(free: Ints, group: NDArray[np.bool_], uniform: NDArray[np.bool_]) -> Ints:
    """What is free in the cells of the group; among GPUs that are alike only the most of it matters."""
    there = np.where(group, free, -1)
    return np.where(uniform[:, None], there.max(axis=1, keepdims=True, initial=-1), there)


def _keys(tag: int, kinds: Ints, *parts: NDArray[np.int8] | Ints) -> list[bytes]:
    """One string of bytes for each row, equal where all of this is equal."""
    columns = [np.full((len(kinds), 1), tag, np.int64), kinds[:, None], *parts]
    joined = np.concatenate([np.ascontiguousarray(part).view(np.uint8) for part in columns], axis=1)
    width = joined.shape[1]
    text = joined.tobytes()
    return [text[start : start + width] for start in range(0, len(text), width)]
