"""Room that is kept for pods that are not bound yet, as the controller lists it in the status of each Inventory."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from lamina.api.v1alpha1.inventory_status import HeldRoom
from lamina.controller.ledger.claims import Reservation
from lamina.controller.ledger.ledger import DoesNotFit, Ledger
from lamina.dialects.groups import group_of
from lamina.model.ledger import Taken
from lamina.ports.kube import Object


class RoomOfNode(NamedTuple):
    """One hold, and on which node it is."""

    node: str
    room: HeldRoom


def read_holds(inventories: Iterable[Object], now: float) -> tuple[RoomOfNode, ...]:
    """The holds whose time is not up, `now` in seconds since 1970. A list that cannot be read is left out."""
    found: list[RoomOfNode] = []
    for obj in inventories:
        with contextlib.suppress(msgspec.ValidationError):
            rooms = msgspec.convert((obj.get("status") or {}).get("holds") or (), tuple[HeldRoom, ...])
            found += [RoomOfNode(obj["metadata"]["name"], each) for each in rooms if each.until > now]
    return tuple(found)


def reserve_holds(ledger: Ledger, holds: Iterable[RoomOfNode]) -> None:
    """Count the holds of pods that wait, as the controller does."""
    by_pod: dict[tuple[str, str], list[HeldRoom]] = {}
    for node, room in holds:
        by_pod.setdefault((room.pod_uid, node), []).append(room)
    for (uid, node), rooms in by_pod.items():
        taken = {
            each.gpu: Taken(each.slots, each.memory_mib, each.cores, whole=each.whole, mps=each.mps) for each in rooms
        }
        with contextlib.suppress(DoesNotFit):  # another pod has it, or the GPU is gone
            ledger.reserve(uid, rooms[0].namespace, rooms[0].pod, Reservation(node, taken, float("inf")))


def hold_lines(holds: Iterable[RoomOfNode], pods: Mapping[str, Object]) -> Iterator[str]:
    """A line for each GPU and pod or group for which room is held. `pods` are by UID."""
    sums: dict[tuple[str, str, str], tuple[int, int]] = {}
    for node, room in holds:
        group = group_of(pods[room.pod_uid]) if room.pod_uid in pods else None
        key = node, room.gpu, str(group) if group else f"pod {room.namespace}/{room.pod}"
        memory_mib, until = sums.get(key, (0, 0))
        sums[key] = memory_mib + room.memory_mib, max(until, room.until)
    for (node, gpu, owner), (memory_mib, until) in sorted(sums.items()):
        end = datetime.fromtimestamp(until, UTC).strftime("%H:%M:%S")
        yield f"  {memory_mib} MiB of GPU {gpu} of node {node} are held for {owner} until {end} UTC at the latest"
