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
from lamina.controller.scheduling.decisions import Decisions
from lamina.core.requests import PodRequest
from lamina.ledger.holds import Hold, Why
from lamina.ledger.ledger import DoesNotFit, Ledger
from lamina.ledger.pods import ParsedPod
from lamina.placement import PodPlacement

EXPECTED_S = 5.0
"""How long a bind is expected. It comes within milliseconds, unless kube-scheduler has to bind volumes first."""


class _Expected(NamedTuple):
    """The pod's CPU and memory count on its node since then, and these shares are held there, if any."""

    pod: ParsedPod
    since: float
    node: str = ""
    placement: PodPlacement | None = None
    arrived: bool = False
    """Whether the bind has arrived, which has not ended."""


class ExpectedBinds:
    """By UID of the pod. Releases only what is held here."""

    def __init__(self, ledger: Ledger, host: HostCapacity, decisions: Decisions, now: Callable[[], float]) -> None:
        self._ledger = ledger
        self._host = host
        self._decisions = decisions
        self._now = now
        self._expected: dict[str, _Expected] = {}
        """The oldest first."""
        self._freed_since: float | None = None

    def expect(self, pod: ParsedPod, node: str) -> None:
        """The pod will probably be bound to the node. Nothing is held where it does not fit there."""
        self.withdraw(pod.uid)
        if not pod.uid:
            return
        self._host.expect_pod(pod.uid, node, pod.host_size)
        if pod.uid not in self._expected:  # else its bind has arrived
            # Places of groups are held together, and what a pod holds already belongs to an attempt to bind it.
            holds = pod.group is None and not self._ledger.totals.of(pod.uid)
            self._put(pod, self._hold(pod, node) if holds else None, node)

    def confirm(self, uid: str, node: str) -> None:
        """The bind has arrived. Its room is held on this node until `settle`."""
        expected = self._expected.get(uid)
        if expected is None:
            return
        self._host.expect_pod(uid, node, expected.pod.host_size)
        if expected.placement is not None and expected.node != node:
            self.settle(uid)
            self._put(expected.pod, self._hold(expected.pod, node), node)
        self._expected[uid] = self._expected[uid]._replace(arrived=True)

    def placement(self, uid: str, node: str, request: PodRequest) -> PodPlacement | None:
        """The shares that are held for this request of the pod on the node, if there are any."""
        expected, hold = self._expected.get(uid), self._ledger.hold_of(uid)
        if expected is None or hold is None or hold.why is not Why.BIND:
            return None
        return expected.placement if expected.node == node and expected.pod.request == request else None

    def settle(self, uid: str) -> None:
        """The bind has succeeded or failed. Releases what is still held for it."""
        expected = self._expected.get(uid)
        if expected is None:
            return
        self._expected[uid] = _Expected(expected.pod, expected.since)
        if self._ledger.release(uid, Why.BIND):
            since = self._freed_since
            self._freed_since = expected.since if since is None else min(since, expected.since)

    def withdraw(self, uid: str) -> None:
        """The pod is tried again, and may go elsewhere. Also releases the room of binds that did not come in time."""
        self.lapse()
        if uid in self._expected:
            self._withdraw(uid)

    def lapse(self) -> None:
        """Release the room of pods whose bind did not come in time."""
        late = self._now() - EXPECTED_S
        for uid, _ in list(takewhile(lambda item: item[1].since <= late, self._expected.items())):
            self._withdraw(uid)

    def freed_since(self) -> float | None:
        """Since when room was held that has become free since the last call; None if none has."""
        freed_since, self._freed_since = self._freed_since, None
        return freed_since

    def _withdraw(self, uid: str) -> None:
        """Of a bind that has arrived, only the CPU and memory."""
        self._host.withdraw_pod(uid)
        if not self._expected[uid].arrived:
            self.settle(uid)
            del self._expected[uid]

    def _put(self, pod: ParsedPod, placement: PodPlacement | None, node: str) -> None:
        self._expected.pop(pod.uid, None)
        self._expected[pod.uid] = _Expected(pod, self._now(), node, placement)

    def _hold(self, pod: ParsedPod, node: str) -> PodPlacement | None:
        """Hold what the pod gets on the node, if it gets anything."""
        request = pod.request
        if request is None or self._decisions.uses_native_devices(request, node):
            return None
        placement = self._decisions.place(pod, request, node)
        if not isinstance(placement, PodPlacement):
            return None
        owner = pod.uid, pod.namespace, pod.name
        try:
            self._ledger.hold(Hold.of_shares(*owner, node, placement.containers, self._now(), Why.BIND))
        except DoesNotFit:
            return None  # the pod has ended
        return placement
