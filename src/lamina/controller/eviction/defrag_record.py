"""What the controller has moved in the last hour and the GPU that it has cordoned for it, in the Lease lamina-defrag.

The record is written before each change, and only as the version that was read. So a replica that begins after a crash
uncordons what was left and knows how many moves remain, and a replica that was replaced moves nothing any more.
"""

from msgspec import Struct

from lamina.errors import Outside
from lamina.ports.kube import LEASES, AlreadyExists, Conflict, Kube, NotFound, Object

NAME = "lamina-defrag"
HOUR_S = 3600.0
_MOVES, _CORDONED = "lamina.dev/moves", "lamina.dev/cordoned"


class DefragRecord(Struct, frozen=True):
    """`moves` are the times of evictions in seconds since the epoch, `cordoned` is a node and the UUID of its GPU."""

    moves: tuple[int, ...] = ()
    cordoned: tuple[str, str] | None = None

    def left(self, most_per_hour: int, now: float) -> int:
        """How many more pods may be moved now. Moves in the future count: the clock of another machine is ahead."""
        return max(0, most_per_hour - sum(move > now - HOUR_S for move in self.moves))

    def with_moves(self, count: int, now: float) -> "DefragRecord":
        """The record after so many more moves, without those of more than an hour ago."""
        recent = tuple(move for move in self.moves if move > now - HOUR_S)
        return DefragRecord((*recent, *(int(now),) * count), self.cordoned)


class RecordStore:
    """The Lease, as one replica sees it. Every method raises Outside, also where another replica has written it."""

    def __init__(self, kube: Kube, identity: str) -> None:
        self._kube = kube
        self._identity = identity
        self._lease: Object | None = None

    async def take(self) -> DefragRecord:
        """Read the record, and write it so that no other replica can until it reads it again."""
        try:
            lease = await self._kube.get(LEASES, NAME, namespace=self._kube.lamina_namespace)
        except NotFound:
            try:
                lease = await self._kube.create(
                    LEASES, {"metadata": {"name": NAME, "namespace": self._kube.lamina_namespace}}
                )
            except AlreadyExists as error:
                raise Outside(f"another replica has created the Lease {NAME}") from error
        self._lease = lease
        record = _read(lease)
        if ((lease.get("spec") or {}).get("holderIdentity") or "") != self._identity:
            await self.write(record)
        return record

    async def write(self, record: DefragRecord) -> None:
        """Write the record over the version that this replica wrote or read last."""
        assert self._lease is not None, "take the record before writing it"
        metadata = self._lease["metadata"]
        annotations = {_MOVES: " ".join(map(str, record.moves))}
        if record.cordoned is not None:
            annotations[_CORDONED] = " ".join(record.cordoned)
        lease = {"metadata": {**metadata, "annotations": annotations}, "spec": {"holderIdentity": self._identity}}
        try:
            self._lease = await self._kube.replace(LEASES, lease)
        except (Conflict, NotFound) as error:
            raise Outside(f"the Lease {NAME} was changed by another replica") from error


def _read(lease: Object) -> DefragRecord:
    """What cannot be read counts as nothing: the annotations are Lamina's own."""
    annotations = lease["metadata"].get("annotations") or {}
    moves = tuple(int(move) for move in str(annotations.get(_MOVES) or "").split() if move.isdecimal())
    node, _, gpu = str(annotations.get(_CORDONED) or "").partition(" ")
    return DefragRecord(moves, (node, gpu) if node and gpu else None)
