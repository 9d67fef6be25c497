"""Room that is held for a pod from the answer that decides its node until kube-scheduler asks for its bind.

kube-scheduler filters the next pod while the bind of the one before is on its way. Without a reservation both would
get the same room, and one of the binds would be refused. So the shares on the node that the pod prefers are reserved
when its scores are answered, or when only one node fits. If kube-scheduler chooses another node, the reservation moves
there as soon as the bind arrives. If no bind arrives, it lapses. So does the pod's CPU and memory, which the packing
policy counts on the node until a watch reports the pod there.
"""

from collections.abc import Callable
from typing import NamedTuple

from lamina.controller.capacity.host_capacity import HostCapacity
from lamina.controller.scheduling.decisions import Decisions
from lamina.core.requests import PodRequest
from lamina.ledger.ledger import DoesNotFit, Ledger, reservation
from lamina.ledger.pod_holding import Reservation
from lamina.ledger.pods import ParsedPod
from lamina.placement import PodPlacement

EXPECTED_S = 5.0
"""How long a bind is expected. It comes within milliseconds, unless kube-scheduler has to bind volumes first."""


class _Expected(NamedTuple):
    pod: ParsedPod
    placement: PodPlacement
    reservation: Reservation
    since: float
    arrived: bool
    """Whether the bind has arrived."""


class ExpectedBinds:
    """Reserves shares in the ledger, and releases only reservations of its own."""

    def __init__(self, ledger: Ledger, host: HostCapacity, decisions: Decisions, now: Callable[[], float]) -> None:
        self._ledger = ledger
        self._decisions = decisions
        self._now = now
        self._expected: dict[str, _Expected] = {}
        """By UID of the pod, the oldest first."""
        self._host = host
        self._sizes: dict[str, tuple[ParsedPod, float]] = {}
        """Pods whose CPU and memory count on the node where they are expected, since when; by UID, the oldest first."""
        self._freed_since: float | None = None

    def expect(self, pod: ParsedPod, node: str) -> None:
        """The pod will probably be bound to the node. Nothing is held where it does not fit there."""
        self.withdraw(pod.uid)
        self._expect_size(pod, node)
        # Places of groups are held together, and what a pod holds already belongs to an attempt to bind it.
        if pod.uid and pod.group is None and not self._ledger.totals.of(pod.uid):
            self._hold(pod, node, arrived=False)

    def confirm(self, uid: str, node: str) -> None:
        """The bind has arrived. Its room is held on this node until `settle`."""
        if (size := self._sizes.get(uid)) is not None:
            self._host.expect_pod(uid, node, size[0].host_size)
        expected = self._expected.get(uid)
        if expected is None:
            return
        if expected.reservation.node == node:
            self._expected[uid] = expected._replace(arrived=True)
        else:
            self.settle(uid)
            self._hold(expected.pod, node, arrived=True)

    def placement(self, uid: str, node: str, request: PodRequest) -> PodPlacement | None:
        """The shares that are held for this request of the pod on the node, if there are any."""
        expected = self._expected.get(uid)
        if expected is None or not self._is_held(uid, expected):
            return None
        same = expected.reservation.node == node and expected.pod.request == request
        return expected.placement if same else None

    def settle(self, uid: str) -> None:
        """The bind has succeeded or failed. Releases what is still held for it."""
        expected = self._expected.pop(uid, None)
        if expected is not None and self._is_held(uid, expected):
            self._ledger.release(uid)
            since = self._freed_since
            self._freed_since = expected.since if since is None else min(since, expected.since)

    def withdraw(self, uid: str) -> None:
        """The pod is tried again, and may go elsewhere. Also releases the room of binds that did not come in time."""
        self.lapse()
        if self._sizes.pop(uid, None) is not None:
            self._host.withdraw_pod(uid)
        expected = self._expected.get(uid)
        if expected is not None and not expected.arrived:
            self.settle(uid)

    def lapse(self) -> None:
        """Release the room of pods whose bind did not come in time."""
        late = self._now() - EXPECTED_S
        while self._sizes and next(iter(self._sizes.values()))[1] <= late:
            uid = next(iter(self._sizes))
            del self._sizes[uid]
            self._host.withdraw_pod(uid)
        for uid, expected in list(self._expected.items()):
            if expected.since > late:
                return
            if not expected.arrived:
                self.settle(uid)

    def freed_since(self) -> float | None:
        """Since when room was held that has become free since the last call; None if none has."""
        freed_since, self._freed_since = self._freed_since, None
        return freed_since

    def _expect_size(self, pod: ParsedPod, node: str) -> None:
        if pod.uid:
            self._sizes[pod.uid] = pod, self._now()
            self._host.expect_pod(pod.uid, node, pod.host_size)

    def _hold(self, pod: ParsedPod, node: str, *, arrived: bool) -> None:
        request = pod.request
        if request is None or self._decisions.uses_native_devices(request, node):
            return
        placement = self._decisions.place(pod, request, node)
        if not isinstance(placement, PodPlacement):
            return
        now = self._now()
        held = reservation(node, placement.containers, now)
        try:
            self._ledger.reserve(pod.uid, pod.namespace, pod.name, held)
        except DoesNotFit:
            return  # the pod has ended
        self._expected[pod.uid] = _Expected(pod, placement, held, now, arrived)

    def _is_held(self, uid: str, expected: _Expected) -> bool:
        """Whether the pod's reservation is the one made here, and not one of an attempt to bind the pod."""
        return self._ledger.reservation_of(uid) is expected.reservation
