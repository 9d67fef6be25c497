"""Who held what of each GPU, and when, since this process started."""

from collections import deque
from collections.abc import Iterator, Mapping

from msgspec import Struct, structs

from lamina.operations.dashboard.document import ClusterDocument, GpuPart
from lamina.operations.dashboard.history import KEPT_S

MAX_ENDED = 200
"""Of each GPU."""


class HeldSpan(Struct, frozen=True, kw_only=True):
    """What a pod or a claim held without a change. Moments are in seconds since the epoch."""

    pod: str
    """Its UID; empty for a claim, for what is hidden, and where it is not known."""
    name: str
    namespace: str
    memory_mib: int
    cores: int
    since: float
    until: float | None = None
    """None while it lasts."""


_Key = tuple[str, str, int, int]


class HolderHistory:
    """Of the GPUs that exist. A clock that goes back ends nothing before it began."""

    def __init__(self) -> None:
        self._held: dict[str, dict[_Key, HeldSpan]] = {}
        self._ended: dict[str, deque[HeldSpan]] = {}

    def note(self, now: float, document: ClusterDocument) -> None:
        """Take in who holds what now, and forget GPUs that are gone."""
        held, ended = self._held, self._ended
        self._held, self._ended = {}, {}
        for node in document.nodes.values():
            for gpu in node.gpus:
                before, parts = held.get(gpu.uuid, {}), {_key(part): part for part in gpu.parts}
                over = [
                    structs.replace(each, until=max(now, each.since))
                    for key, each in before.items()
                    if key not in parts
                ]
                past = ended.get(gpu.uuid) or deque[HeldSpan](maxlen=MAX_ENDED)
                past.extend(over)
                while past and (past[0].until or now) < now - KEPT_S:
                    past.popleft()
                self._ended[gpu.uuid] = past
                self._held[gpu.uuid] = {key: before.get(key) or _holder(part, now) for key, part in parts.items()}

    def of_gpu(self, uuid: str) -> list[HeldSpan]:
        """Those of a GPU, in the order in which they began."""
        found = (*self._ended.get(uuid, ()), *self._held.get(uuid, {}).values())
        return sorted(found, key=lambda holder: (holder.since, holder.name))


def _key(part: GpuPart) -> _Key:
    return part.pod, part.name, part.memory_mib, part.cores


def _holder(part: GpuPart, now: float) -> HeldSpan:
    return HeldSpan(
        pod=part.pod,
        name=part.name,
        namespace=part.namespace,
        memory_mib=part.memory_mib,
        cores=part.cores,
        since=now,
    )


def holders_of(
    held: Mapping[tuple[str, str], list[tuple[float, int]]], uids: Mapping[str, str], gap_s: float
) -> Iterator[HeldSpan]:
    """The same of readings: by namespace and pod, moments and MiB. One that is missing for longer than `gap_s` was not
    held meanwhile. `uids` are those of pods that exist, by namespace/name."""
    for (namespace, pod), readings in held.items():
        name, began = f"{namespace}/{pod}", 0
        for place, (moment, memory_mib) in enumerate(readings):
            following = readings[place + 1] if place + 1 < len(readings) else None
            if following is not None and following[0] - moment <= gap_s and following[1] == memory_mib:
                continue
            yield HeldSpan(
                pod=uids.get(name, ""),
                name=name,
                namespace=namespace,
                memory_mib=memory_mib,
                cores=0,
                since=readings[began][0],
                until=moment,
            )
            began = place + 1
