"""Room that is held for a pod from the answer that decides its node until kube-scheduler asks for its bind.

kube-scheduler filters the next pod while the bind of the one before is on its way. Without a hold both would get the
same room, and one of the binds would be refused. So the shares on the node that the pod prefers are held when its
scores are answered, or when only one node fits. If kube-scheduler chooses another node, the hold moves there as soon as
the bind arrives. If no bind arrives, it lapses. So does the pod's CPU and memory, which the packing policy counts on
the node until a watch reports the pod there.
"""

from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple

from lamina.controller.capacity.host_capacity import HostCapacity
from lamina.controller.scheduling.scheduler import Scheduler
from lamina.core.requests import PodRequest
from lamina.ledger.holds import Hold, Why
from lamina.ledger.ledger import DoesNotFit, Ledger
from lamina.ledger.pods import ParsedPod
from lamina.placement import PodPlacement

ASSUMED_S = 5.0
"""How long a bind is expected. It comes within milliseconds, unless kube-scheduler has to bind volumes first."""


class _Assumed(NamedTuple):
    """The pod's CPU and memory count on its node since then, and these shares are held there, if any."""

    pod: ParsedPod
    since: float
    node: str = ""
    placement: PodPlacement | None = None
    arrived: bool = False
    """Whether the bind has arrived, which has not ended."""


class AssumedPods:
    """By UID of the pod. Releases only what is held here."""

    def __init__(self, ledger: Ledger, host: HostCapacity, scheduler: Scheduler, now: Callable[[], float]) -> None:
        self._ledger = ledger
        self._host = host
        self._scheduler = scheduler
        self._now = now
        self._assumed: dict[str, _Assumed] = {}
        """The oldest first."""
        self._freed_since: float | None = None

    def assume(self, pod: ParsedPod, node: str) -> None:
        """The pod will probably be bound to the node. Nothing is held where it does not fit there."""
        self.withdraw(pod.uid)
        if not pod.uid:
            return
        self._host.assume_pod(pod.uid, node, pod.host_size)
        if pod.uid not in self._assumed:  # else its bind has arrived
            # Places of groups are held together, and what a pod holds already belongs to an attempt to bind it.
            holds = pod.group is None and not self._ledger.totals.of(pod.uid)
            self._put(pod, self._hold(pod, node) if holds else None, node)

    def confirm(self, uid: str, node: str) -> None:
        """The bind has arrived. Its room is held on this node until `settle`."""
        assumed = self._assumed.get(uid)
        if assumed is None:
            return
        self._host.assume_pod(uid, node, assumed.pod.host_size)
        if assumed.placement is not None and assumed.node != node:
            self.settle(uid)
            self._put(assumed.pod, self._hold(assumed.pod, node), node)
        self._assumed[uid] = self._assumed[uid]._replace(arrived=True)

    def placement(self, uid: str, node: str, request: PodRequest) -> PodPlacement | None:
        """The shares that are held for this request of the pod on the node, if there are any."""
        assumed, hold = self._assumed.get(uid), self._ledger.hold_of(uid)
        if assumed is None or hold is None or hold.why is not Why.BIND:
            return None
        return assumed.placement if assumed.node == node and assumed.pod.request == request else None

    def settle(self, uid: str) -> None:
        """The bind has succeeded or failed. Releases what is still held for it."""
        assumed = self._assumed.get(uid)
        if assumed is None:
            return
        self._assumed[uid] = _Assumed(assumed.pod, assumed.since)
        if self._ledger.release(uid, Why.BIND):
            since = self._freed_since
            self._freed_since = assumed.since if since is None else min(since, assumed.since)

    def withdraw(self, uid: str) -> None:
        """The pod is tried again, and may go elsewhere. Also releases the room of binds that did not come in time."""
        self.lapse()
        if uid in self._assumed:
            self._withdraw(uid)

    def lapse(self) -> None:
        """Release the room of pods whose bind did not come in time."""
        late = self._now() - ASSUMED_S
        for uid, _ in list(takewhile(lambda item: item[1].since <= late, self._assumed.items())):
            self._withdraw(uid)

    def freed_since(self) -> float | None:
        """Since when room was held that has become free since the last call; None if none has."""
        freed_since, self._freed_since = self._freed_since, None
        return freed_since

    def _withdraw(self, uid: str) -> None:
        """Of a bind that has arrived, only the CPU and memory."""
        self._host.withdraw_pod(uid)
        if not self._assumed[uid].arrived:
            self.settle(uid)
            del self._assumed[uid]

    def _put(self, pod: ParsedPod, placement: PodPlacement | None, node: str) -> None:
        self._assumed.pop(pod.uid, None)
        self._assumed[pod.uid] = _Assumed(pod, self._now(), node, placement)

    def _hold(self, pod: ParsedPod, node: str) -> PodPlacement | None:
        """Hold what the pod gets on the node, if it gets anything."""
        request = pod.request
        if request is None or self._scheduler.uses_native_devices(request, node):
            return None
        placement = self._scheduler.place(pod, request, node)
        if not isinstance(placement, PodPlacement):
            return None
        owner = pod.uid, pod.namespace, pod.name
        try:
            self._ledger.hold(Hold.of_shares(*owner, node, placement.containers, self._now(), Why.BIND))
        except DoesNotFit:
            return None  # the pod has ended
        return placement
