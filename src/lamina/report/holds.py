"""Room that is kept for pods that are not bound yet, as the controller lists it in the status of each Inventory."""

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from lamina.core.inventory_status import HeldRoom
from lamina.core.ledger import Taken, beyond
from lamina.dialects.groups import GroupName
from lamina.ledger.holds import Hold, Why
from lamina.ledger.ledger import DoesNotFit, Ledger
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
            found += [
                RoomOfNode(obj["metadata"]["name"], each) for each in rooms if each.until is None or each.until > now
            ]
    return tuple(found)


def count_holds(ledger: Ledger, holds: Iterable[RoomOfNode], leaving: Set[str]) -> None:
    """Count the holds of pods that wait, as the controller does. Pods with the UIDs `leaving` are being deleted: where
    pods are evicted, what they still hold counts once."""
    by_pod: dict[tuple[str, str], list[HeldRoom]] = {}
    for node, room in holds:
        by_pod.setdefault((room.pod_uid, node), []).append(room)
    theirs = {node: ledger.totals.taken_of_pods(node, leaving) for _, node in by_pod}
    for (uid, node), rooms in by_pod.items():
        taken = {
            each.gpu: Taken(each.slots, each.memory_mib, each.cores, whole=each.whole, mps=each.mps) for each in rooms
        }
        nominated = any(each.nominated for each in rooms)
        if nominated:
            taken = beyond(taken, theirs[node])
        why = Why.NOMINATION if nominated else Why.BIND
        with contextlib.suppress(DoesNotFit):  # another pod has it, or the GPU is gone
            ledger.hold(Hold(uid, rooms[0].namespace, rooms[0].pod, node, taken, math.inf, why))


def hold_lines(holds: Iterable[RoomOfNode], groups: Mapping[str, GroupName | None]) -> Iterator[str]:
    """A line for each GPU and pod or group for which room is held. `groups` are by the UID of the pod."""
    sums: dict[tuple[str, str, str], tuple[int, float]] = {}
    for node, room in holds:
        group = groups.get(room.pod_uid)
        owner = str(group) if group else f"pod {room.namespace}/{room.pod}"
        key = node, room.gpu, f"{owner}, for which pods are evicted," if room.nominated else owner
        memory_mib, until = sums.get(key, (0, 0))
        sums[key] = memory_mib + room.memory_mib, max(until, math.inf if room.until is None else room.until)
    for (node, gpu, owner), (memory_mib, until) in sorted(sums.items()):
        end = "it is bound" if math.isinf(until) else f"{datetime.fromtimestamp(until, UTC):%H:%M:%S} UTC at the latest"
        yield f"  {memory_mib} MiB of GPU {gpu} of node {node} are held for {owner} until {end}"
