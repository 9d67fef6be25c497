"""The packing policy over places that are only planned: each planned pod changes the ratings for those after it."""

from collections.abc import Mapping

from lamina.placement.packing import Ask, Packer
from lamina.placement.packing.mix import Floats
from lamina.placement.packing.packer import Levels


class PackingTrial:
    """`packer` rates a copy of the cluster, which belongs to the trial; `rows` has the row of each node."""

    def __init__(self, packer: Packer, rows: Mapping[str, int]) -> None:
        self.rows = rows
        self._packer = packer
        self.changed: list[int] = []
        """The rows where something was planned, one for each change."""

    def adopt(self, ask: Ask, levels: Levels) -> None:
        """Spare the trial computing levels that are known for the cluster without what is planned."""
        self._packer.adopt({ask: (levels[0].copy(), levels[1].copy())}, set(self.changed))

    def levels(self, ask: Ask) -> Floats:
        """How good each row is; -inf where the pod does not fit according to the arrays."""
        return self._packer.levels(ask)[0]

    def best_gpus(self, ask: Ask, node: str) -> int:
        """The best GPUs of the node as bits."""
        return int(self._packer.levels(ask)[1][self.rows[node]])

    def take(self, ask: Ask, node: str, gpus: int) -> None:
        """Plan a pod on these GPUs (bits) of the node."""
        self.changed.append(self.rows[node])
        self._packer.take(self.rows[node], gpus, ask)

    def release(self, ask: Ask, node: str, gpus: int) -> None:
        """Undo `take`."""
        self.changed.append(self.rows[node])
        self._packer.release(self.rows[node], gpus, ask)
